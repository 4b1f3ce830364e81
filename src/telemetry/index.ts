export type { ObservedEvents, ObservedLog, ObservedShadow } from "./observe.ts";
export { activeSpan } from "./span.ts";
export { createTelemetry, type Telemetry, type TelemetryOptions } from "./telemetry.ts";
