import { FarhandError } from "../../proto/farhand-error.js";

/** The FarhandError that a promise is rejected with; anything else fails the test. */
export const faultOf = async (promise: Promise<unknown>): Promise<FarhandError> => {
  let value: unknown;
  try {
    value = await promise;
  } catch (error) {
    if (error instanceof FarhandError) return error;
    throw error;
  }
  throw new Error(`expected a FarhandError, and got ${JSON.stringify(value)}`);
};
