/** A NumericDate (RFC 7519 section 2) as ISO 8601, in whole seconds where it has no fraction. */
export function instant(seconds: number): string {
	const date = new Date(seconds * 1000);
	if (Number.isNaN(date.getTime())) return `NumericDate ${seconds}`;
	return date.toISOString().replace(".000Z", "Z");
}

/** How long something takes, in the two largest units that say something. */
export function duration(seconds: number): string {
	const whole = Math.abs(seconds);
	if (whole < 60) return `${Number(whole.toFixed(3))} s`;
	const units = [
		[86_400, "d"],
		[3600, "h"],
		[60, "min"],
		[1, "s"],
	] as const;
	const at = units.findIndex(([size]) => whole >= size);
	const [size, name] = units[at] ?? units[3];
	const [smaller, smallerName] = units[at + 1] ?? units[3];
	const rest = Math.floor((whole % size) / smaller);
	return `${Math.floor(whole / size)} ${name}${rest > 0 ? ` ${rest} ${smallerName}` : ""}`;
}
