import type { FaultRow } from "../proto/faults.js";

export declare const renderFaults: (faults: Readonly<Record<string, FaultRow>>) => string;
export declare const withFaults: (text: string, faults: Readonly<Record<string, FaultRow>>) => string;
