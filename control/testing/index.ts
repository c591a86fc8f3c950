export { createTestFarhand, type TestFarhand, type TestFarhandOptions } from "./test-farhand.js";
export type { TestMachine } from "./test-machine.js";
export type { TestFiles } from "./test-files.js";
export type { CommandMatch, RunScript, ScriptedEnd, TestCommand } from "./script.js";
export type { Family } from "./op-rows.js";
export type { Presence, Switches } from "./switches.js";
export type { RecordedRequest } from "./requests.js";
export type { Clock } from "../clock.js";
