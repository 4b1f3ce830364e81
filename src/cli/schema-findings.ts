import { type Listing, listDataErrors, listTableErrors } from "../generated/listings.js";
import type { ValidationError } from "../generated/validators.js";
import { type Found, pointer } from "./finding.ts";

/** All that is wrong with policy data by `schemas/data.json`. */
export function dataSchemaFindings(data: unknown): Found[] {
	return findings(data, listDataErrors, "data_schema");
}

/** All that is wrong with a decision table by `schemas/table.json`. */
export function tableSchemaFindings(table: unknown): Found[] {
	return findings(table, listTableErrors, "table_schema");
}

function findings(value: unknown, list: Listing, rule: string): Found[] {
	if (list(value)) return [];
	// An error of a name comes twice: for the name, and for the object that has it, which says which name.
	const errors = (list.errors ?? []).filter(
		({ keyword, instancePath }) =>
			!OF_TEXT.includes(keyword) || typeof valueAt(value, instancePath) === "string",
	);
	return errors.map((error): Found => {
		const at = placeOf(error);
		const found = valueAt(value, at);
		if (error.keyword === "pattern" && typeof found === "string" && /\/scope\/\d+$/.test(at)) {
			if (/\s/.test(found)) {
				const message = "a scope with a space in it is several scopes: write each on its own";
				return { severity: "error", rule: "scope_with_space", pointer: at, message };
			}
		}
		return { severity: "error", rule, pointer: at, message: sentence(error, at) };
	});
}

const OF_TEXT = ["pattern", "minLength"];

function placeOf({ instancePath, params }: ValidationError): string {
	const name = params.propertyName ?? params.additionalProperty ?? params.missingProperty;
	return instancePath + (typeof name === "string" ? pointer(name) : "");
}

function sentence({ keyword, params, message }: ValidationError, at: string): string {
	const { allowedValues, missingProperty } = params;
	if (keyword === "additionalProperties") return "there is no such member";
	if (keyword === "required") return `missing: ${String(missingProperty)} is required`;
	if (Array.isArray(allowedValues)) return `must be one of ${allowedValues.join(", ")}`;
	if (keyword === "propertyNames") return "the name must be a resource indicator: no spaces, and no pattern";
	if (keyword !== "pattern") return message ?? "not valid";
	if (/^\/coverage\/[^/]+\/\d+$/.test(at)) {
		return "must be a resource indicator, or scheme, authority and a path that ends in /* (one star, and at the end)";
	}
	if (/\/scope\/\d+$/.test(at)) return "must be one scope token (RFC 6749 section 3.3)";
	if (/^\/identity_claims\//.test(at)) return "is compared already, or cannot be compared";
	return "must be a resource indicator: no spaces, and no pattern";
}

function valueAt(value: unknown, at: string): unknown {
	let found = value;
	for (const part of at.split("/").slice(1)) {
		const name = part.replaceAll("~1", "/").replaceAll("~0", "~");
		found =
			typeof found === "object" && found !== null ? (found as Record<string, unknown>)[name] : undefined;
	}
	return found;
}
