export interface Line {
	readonly name: string;
	/** Pending events, microseconds. */
	readonly points: readonly (readonly [number, number])[];
}

const WIDTH = 760;
const HEIGHT = 520;
const LEFT = 70;
const RIGHT = 250;
const TOP = 44;
const BOTTOM = 52;
const COLOURS = ["#0b7285", "#2b8a3e", "#9c36b5", "#c92a2a", "#e67700"];

/** Lines on two logarithmic axes, as SVG. */
export function plot(title: string, lines: readonly Line[]): string {
	const all = lines.flatMap(({ points }) => points);
	const x = scale(
		all.map(([n]) => n),
		LEFT,
		WIDTH - RIGHT,
	);
	const y = scale(
		all.map(([, time]) => time),
		HEIGHT - BOTTOM,
		TOP,
	);
	const grid = [
		...x.ticks.map(
			(n) =>
				`<path class="grid" d="M${x.at(n)} ${TOP}V${HEIGHT - BOTTOM}"/><text x="${x.at(n)}" y="${HEIGHT - BOTTOM + 18}" text-anchor="middle">${label(n)}</text>`,
		),
		...y.ticks.map(
			(time) =>
				`<path class="grid" d="M${LEFT} ${y.at(time)}H${WIDTH - RIGHT}"/><text x="${LEFT - 8}" y="${y.at(time) + 4}" text-anchor="end">${label(time)} µs</text>`,
		),
	];
	const drawn = lines.map(({ name, points }, index) => {
		const colour = COLOURS[index % COLOURS.length];
		const path = points.map(([n, time]) => `${x.at(n)},${y.at(time)}`).join(" ");
		const [lastN = 1, lastTime = 1] = points.at(-1) ?? [];
		const dots = points.map(
			([n, time]) => `<circle cx="${x.at(n)}" cy="${y.at(time)}" r="3" fill="${colour}"/>`,
		);
		return `<polyline points="${path}" fill="none" stroke="${colour}" stroke-width="2"/>${dots.join("")}<text x="${Math.max(x.at(lastN), WIDTH - RIGHT) + 8}" y="${y.at(lastTime) + 4}" fill="${colour}">${name}</text>`;
	});
	return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${title}">
<style>text{font:12px system-ui,sans-serif;fill:#495057}.title{font-size:15px;font-weight:600}.grid{stroke:#dee2e6}</style>
<rect width="${WIDTH}" height="${HEIGHT}" fill="#fff"/>
<text class="title" x="${LEFT}" y="24">${title}</text>
${grid.join("\n")}
<text x="${(LEFT + WIDTH - RIGHT) / 2}" y="${HEIGHT - 12}" text-anchor="middle">pending events</text>
${drawn.join("\n")}
</svg>
`;
}

function scale(values: readonly number[], from: number, to: number) {
	const low = Math.floor(Math.log10(Math.min(...values)));
	const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(...values))));
	return {
		ticks: Array.from({ length: high - low + 1 }, (_, index) => 10 ** (low + index)),
		at: (value: number) =>
			Math.round((from + ((Math.log10(value) - low) / (high - low)) * (to - from)) * 10) / 10,
	};
}

function label(value: number): string {
	return value.toLocaleString("en-US", { maximumFractionDigits: 2 });
}
