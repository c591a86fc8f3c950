import type { ArgsOf, Call, OpName, ResponseResult } from "../call.js";
import { cancel } from "./cancel.js";
import { describe } from "./describe.js";
import { fsChmod } from "./fs-chmod.js";
import { fsList } from "./fs-list.js";
import { fsMkdir } from "./fs-mkdir.js";
import { fsMove } from "./fs-move.js";
import { fsRead } from "./fs-read.js";
import { fsRemove } from "./fs-remove.js";
import { fsStat } from "./fs-stat.js";
import { fsWrite } from "./fs-write.js";
import type { Host, Op } from "./op.js";
import { ping } from "./ping.js";
import { procRun } from "./proc-run.js";

type OpTable = { readonly [K in OpName]: Op<K> };

/** Every op of the proto has a row here; the compiler misses one that has not. */
export const OPS: OpTable = {
  ping,
  describe: describe(() => Object.keys(OPS)),
  cancel,
  procRun,
  fsStat,
  fsRead,
  fsWrite,
  fsList,
  fsMkdir,
  fsMove,
  fsRemove,
  fsChmod,
};

const runOp = async <K extends OpName>(
  op: { $case: K; value: ArgsOf<K> },
  call: Call,
  host: Host,
): Promise<ResponseResult> => {
  const row: Op<K> = OPS[op.$case];
  // The table's type ties each name to its own result, which the compiler cannot follow through a union.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return { $case: op.$case, value: await row.run(op.value, call, host) } as ResponseResult;
};

/** The end of the path of a request: the op itself. */
export const act =
  (host: Host) =>
  async (call: Call): Promise<ResponseResult> =>
    runOp(call.op, call, host);
