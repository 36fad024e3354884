// Send one agent run with the stock exporter: node agent.js proto|http URL. Prints the trace id.
"use strict";

const { NodeTracerProvider, BatchSpanProcessor } = require("@opentelemetry/sdk-trace-node");
const { resourceFromAttributes } = require("@opentelemetry/resources");
const [form, url, compression] = process.argv.slice(2);
const { OTLPTraceExporter } = require(`@opentelemetry/exporter-trace-otlp-${form}`);

const exporter = new OTLPTraceExporter({ url, compression });
const provider = new NodeTracerProvider({
  resource: resourceFromAttributes({ "service.name": "shop", "service.version": "1.0" }),
  spanProcessors: [new BatchSpanProcessor(exporter)],
});
provider.register();
const tracer = provider.getTracer("agent");

const wait = (ms) => new Promise((done) => setTimeout(done, ms));

async function call(tool, args, result, error) {
  await tracer.startActiveSpan(`execute_tool ${tool}`, async (span) => {
    span.setAttributes({
      "gen_ai.operation.name": "execute_tool",
      "gen_ai.tool.name": tool,
      "gen_ai.tool.call.arguments": JSON.stringify(args),
    });
    await wait(3);
    if (error) {
      span.recordException(new Error(error));
      span.setStatus({ code: 2, message: error });
    } else {
      span.setAttribute("gen_ai.tool.call.result", JSON.stringify(result));
    }
    span.end();
  });
}

async function main() {
  let traceId;
  await tracer.startActiveSpan("invoke_agent bot", async (root) => {
    traceId = root.spanContext().traceId;
    const user = [{ role: "user", parts: [{ type: "text", content: "Ship sku S-1234 for ticket T-77 — schnell, bitte" }] }];
    root.setAttributes({
      "gen_ai.operation.name": "invoke_agent",
      "gen_ai.agent.name": "bot",
      "gen_ai.input.messages": JSON.stringify(user),
    });
    await call("read_ticket", { id: "T-77" }, { ok: true, note: "customer K-4711 waits", words: ["ünï", "漢字"] });
    await call("check_inventory", { sku: "S-1234" }, null, "inventory is down");
    await call("check_inventory", { sku: "S-1234" }, { ok: true, stock: 3 });
    await call("update_ticket", { id: "T-77", customer: "K-4711" }, { ok: true });
    const done = [{ role: "assistant", parts: [{ type: "text", content: "Done." }], finish_reason: "stop" }];
    root.setAttribute("gen_ai.output.messages", JSON.stringify(done));
    root.end();
  });
  await provider.forceFlush();
  await provider.shutdown();
  console.log(traceId);
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
