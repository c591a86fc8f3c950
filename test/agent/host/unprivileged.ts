/** A user who owns nothing. */
const NOBODY = 65_534;

/** Does something with no more rights than a plain user has; root's own checks would let everything pass. */
export const asPlainUser = async <T>(task: () => Promise<T>): Promise<T> => {
  if (process.geteuid?.() !== 0) return task();
  process.setegid?.(NOBODY);
  process.seteuid?.(NOBODY);
  try {
    return await task();
  } finally {
    process.seteuid?.(0);
    process.setegid?.(0);
  }
};
