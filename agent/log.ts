import { type Logger, pino } from "pino";

/** JSON lines for machines; on a terminal, lines for people. */
export const createLog = async (
  level: string,
  stream: NodeJS.WriteStream = process.stdout,
): Promise<Logger> => {
  if (!stream.isTTY) return pino({ level, base: null }, stream);
  const { default: pretty } = await import("pino-pretty");
  return pino(
    { level, base: null },
    pretty({ sync: true, destination: stream, ignore: "pid,hostname", translateTime: "SYS:HH:MM:ss" }),
  );
};
