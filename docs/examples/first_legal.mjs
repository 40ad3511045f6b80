// An agent as a program: takes the first legal action, in JavaScript for node.
import { createInterface } from "node:readline";

const say = (message) => console.log(JSON.stringify(message));

for await (const line of createInterface({ input: process.stdin })) {
  const message = JSON.parse(line);
  if (message.type === "hello") say({ type: "ready" });
  if (message.type === "observation") say({ type: "action", action: message.legal?.[0] ?? message.default });
}
