import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createCredential } from "../../control/authority/creds.js";
import { openKeys } from "../../control/authority/keys.js";
import { operatorConfig } from "../../control/authority/server-config.js";
import { createToken } from "../../control/authority/tokens.js";
import { parseCredentials } from "../../control/credentials.js";
import { createFarhand } from "../../control/farhand.js";
import { startPlane } from "../../control/plane/plane.js";
import { createNatsRpc } from "../../control/wire/nats-rpc.js";
import { serving, startAgentProcess } from "../support/agent.js";
import { atEnd } from "../support/at-end.js";
import { makeCertificate, type ServerCertificate } from "../support/certificate-authority.js";
import { faultOf } from "../support/fails.js";
import { freePort, startNatsServer, type TestServer } from "../support/nats-server.js";
import { temporaryDirectory } from "../support/temporary.js";
import { until } from "../support/until.js";

/** Three servers that speak TLS and know each other, under one authority. */
const startCluster = async (
  home: string,
  { certFile, keyFile }: ServerCertificate,
): Promise<TestServer[]> => {
  const keys = openKeys(home);
  const ports = await Promise.all([freePort(), freePort(), freePort()]);
  const routes = ports.map((port) => `"nats-route://127.0.0.1:${port}"`).join(", ");
  const tls = `tls { cert_file: ${JSON.stringify(certFile)}, key_file: ${JSON.stringify(keyFile)} }\n`;
  return Promise.all(
    ports.map(async (port) =>
      startNatsServer(
        `${tls}cluster { name: test, listen: "127.0.0.1:${port}", routes: [${routes}] }\n` +
          (await operatorConfig(keys, temporaryDirectory())),
      ),
    ),
  );
};

test(
  "a cluster of three with TLS: a machine joins by its token alone, and both sides outlive a node",
  { timeout: 60_000 },
  async () => {
    const certificate = makeCertificate();
    const { caFile, ca } = certificate;
    const home = temporaryDirectory();
    const servers = await startCluster(home, certificate);
    const urls = servers.map(({ port }) => `tls://127.0.0.1:${port}`);
    const keys = openKeys(home);
    const plane = await until(
      "the cluster keeps records",
      () => startPlane({ servers: urls, caFile, onProblem: () => undefined, keys, home, replicas: 3 }),
      20_000,
    );
    atEnd(() => plane.close());
    const { authority } = plane;
    const { text } = await createCredential(authority, { workspace: "w1", name: "tls", role: "operator" });
    const token = await createToken(authority, { workspace: "w1", machine: "m1", servers: urls, ca });
    const [tokenFile, stateDir] = [join(home, "token"), join(home, "state")];
    writeFileSync(tokenFile, token.text, { mode: 0o600 });
    const joining = startAgentProcess(["join", "--token-file", tokenFile, "--state", stateDir, "--no-run"]);
    expect([await joining.exited, joining.stderr()]).toEqual([0, expect.any(String)]);
    const agent = startAgentProcess(["run", "--state", stateDir, "--root", home]);
    const { server: agentServer } = await serving(agent).catch((error: unknown) => {
      throw new Error(JSON.stringify(agent.log) + agent.stderr(), { cause: error });
    });

    const credentials = parseCredentials(text, "test");
    const rpc = createNatsRpc({ servers: urls, name: "test", credentials, caFile });
    const farhand = createFarhand({ rpc, workspace: "w1", credentials });
    atEnd(() => farhand.close());
    const machine = farhand.machine("m1");
    expect((await machine.commands.run("echo over TLS")).stdout).toBe("over TLS\n");

    const hit = servers.find(({ port }) => String(agentServer).endsWith(String(port)));
    if (hit === undefined) throw new Error(`the agent is on ${String(agentServer)}`);
    await hit.kill("SIGKILL");
    const killedAt = performance.now();
    await until(
      "the machine answers over another node",
      () => machine.ping({ timeoutMs: 500 }).catch(() => undefined),
      5_000,
    );
    expect(performance.now() - killedAt).toBeLessThan(5_000);
    expect((await machine.commands.run("echo again")).stdout).toBe("again\n");
  },
);

test("a server whose certificate is signed by somebody else is not talked to", async () => {
  const certificate = makeCertificate();
  const home = temporaryDirectory();
  const tls = `tls { cert_file: ${JSON.stringify(certificate.certFile)}, key_file: ${JSON.stringify(certificate.keyFile)} }\n`;
  const server = await startNatsServer(tls + (await operatorConfig(openKeys(home), home)));
  const rpc = createNatsRpc({
    servers: [`tls://127.0.0.1:${server.port}`],
    name: "test",
    caFile: makeCertificate().caFile,
  });
  const farhand = createFarhand({ rpc, workspace: "w1" });
  atEnd(() => farhand.close());
  expect(await faultOf(farhand.machine("m1").ping())).toMatchObject({
    code: "control_unavailable",
    ran: "no",
  });
});
