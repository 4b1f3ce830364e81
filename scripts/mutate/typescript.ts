import { readFileSync } from "node:fs";
import ts from "typescript";
import { type Change, type Mutant, mutantsOf } from "./mutant.ts";

// Mutants of TypeScript, by the compiler's own syntax tree. Messages are left as they are: they decide nothing.

const COMPARISONS: Readonly<Record<string, readonly string[]>> = {
	"===": ["!=="],
	"!==": ["==="],
	"==": ["!="],
	"!=": ["=="],
	"<": ["<=", ">"],
	"<=": ["<", ">"],
	">": [">=", "<"],
	">=": [">", "<"],
	"+": ["-"],
	"-": ["+"],
};

/** Methods that may be called in another's place. */
const METHODS: Readonly<Record<string, string>> = {
	some: "every",
	every: "some",
	find: "findLast",
	unshift: "push",
	has: "delete",
};

/** All mutants of a TypeScript file. */
export function mutateTypeScript(file: string): Mutant[] {
	const text = readFileSync(file, "utf8");
	const source = ts.createSourceFile(file, text, ts.ScriptTarget.ES2022, true);
	const changes: Change[] = [];

	function visit(node: ts.Node, within: string): void {
		const name = nameOf(node) ?? within;
		changes.push(...changesOf(node, source).map((change) => ({ within: name, ...change })));
		ts.forEachChild(node, (child) => visit(child, name));
	}
	for (const statement of source.statements) if (!isOfTypes(statement)) visit(statement, "");
	return mutantsOf(file, text, changes);
}

function isOfTypes(node: ts.Node): boolean {
	return (
		ts.isImportDeclaration(node) ||
		ts.isExportDeclaration(node) ||
		ts.isInterfaceDeclaration(node) ||
		ts.isTypeAliasDeclaration(node)
	);
}

function nameOf(node: ts.Node): string | undefined {
	const isNamed =
		ts.isFunctionDeclaration(node) || ts.isMethodDeclaration(node) || ts.isVariableDeclaration(node);
	return isNamed && node.name !== undefined && ts.isIdentifier(node.name) ? node.name.text : undefined;
}

type Edit = Omit<Change, "within">;

function changesOf(node: ts.Node, source: ts.SourceFile): Edit[] {
	const text = (of: ts.Node) => of.getText(source);
	const replace = (operator: string, replacement: string, of: ts.Node = node): Edit => ({
		operator,
		replacement,
		start: of.getStart(source),
		end: of.getEnd(),
	});
	const always = (condition: ts.Expression) => [
		replace("always", "true", condition),
		replace("never", "false", condition),
	];

	if (ts.isIfStatement(node)) return always(node.expression);
	if (ts.isConditionalExpression(node)) return always(node.condition);
	if (ts.isBinaryExpression(node)) return changesOfBinary(node, text, replace);
	if (ts.isPrefixUnaryExpression(node) && node.operator === ts.SyntaxKind.ExclamationToken) {
		return [replace("not negated", `(${text(node.operand)})`)];
	}
	if (ts.isExpressionStatement(node)) return [replace("without a statement", ";")];
	if (ts.isNumericLiteral(node)) {
		return [replace("another number", String(Number(node.text.replaceAll("_", "")) + 1))];
	}
	if (node.kind === ts.SyntaxKind.TrueKeyword) return [replace("the other", "false")];
	if (node.kind === ts.SyntaxKind.FalseKeyword) return [replace("the other", "true")];
	if (ts.isPropertyAccessExpression(node) && ts.isCallExpression(node.parent)) {
		const other = node.parent.expression === node ? METHODS[node.name.text] : undefined;
		return other === undefined ? [] : [replace("another method", other, node.name)];
	}
	if (ts.isStringLiteral(node) && isLookedUp(node)) return [replace("another word", `"${node.text}x"`)];
	if (ts.isSpreadAssignment(node) || ts.isSpreadElement(node)) {
		return [replace("without what is spread", ts.isSpreadAssignment(node) ? "...{}" : "...[]")];
	}
	if (ts.isCallExpression(node)) return changesOfCall(node, text, replace);
	return [];
}

function changesOfBinary(
	node: ts.BinaryExpression,
	text: (of: ts.Node) => string,
	replace: (operator: string, replacement: string, of?: ts.Node) => Edit,
): Edit[] {
	const { left, right, operatorToken } = node;
	const operator = text(operatorToken);
	if (operator === "&&" || operator === "||") {
		const condition = isCondition(node) ? [replace("always", "true"), replace("never", "false")] : [];
		return [replace("left alone", text(left)), replace("right alone", text(right)), ...condition];
	}
	if (operator === "??") return [replace("left alone", text(left)), replace("right alone", text(right))];
	const isCompared = ["===", "!==", "<", "<=", ">", ">="].includes(operator);
	return [
		...(COMPARISONS[operator] ?? []).map((other) => replace("another operator", other, operatorToken)),
		...(isCompared && !isInCondition(node) && !isOperand(node)
			? [replace("always", "true"), replace("never", "false")]
			: []),
	];
}

function changesOfCall(
	node: ts.CallExpression,
	text: (of: ts.Node) => string,
	replace: (operator: string, replacement: string, of?: ts.Node) => Edit,
): Edit[] {
	const isNegated = ts.isPrefixUnaryExpression(node.parent);
	return [
		...(isOperand(node) && !isNegated ? [replace("negated", `!${text(node)}`)] : []),
		...(text(node.expression) === "sortedSet" ? [replace("left out", text(node.arguments[0] ?? node))] : []),
	];
}

/** What an `if` or `?:` asks is mutated there. */
function isInCondition(node: ts.Node): boolean {
	const { parent } = node;
	return (
		(ts.isIfStatement(parent) && parent.expression === node) ||
		(ts.isConditionalExpression(parent) && parent.condition === node)
	);
}

/** What is left without the other operand is mutated there. */
function isOperand({ parent }: ts.Node): boolean {
	return ts.isBinaryExpression(parent) && ["&&", "||"].includes(parent.operatorToken.getText());
}

function isCondition(node: ts.Node): boolean {
	return !isInCondition(node) && (ts.isReturnStatement(node.parent) || ts.isArrowFunction(node.parent));
}

/** A word that something is looked up by; one that it is compared with is mutated with the comparison. */
function isLookedUp({ parent }: ts.StringLiteral): boolean {
	return (
		ts.isArrayLiteralExpression(parent) || (ts.isCallExpression(parent) && parent.arguments.length === 2)
	);
}
