import { start } from "./pif.js";

let call;
onmessage = ({ data }) => {
  if (data.module) {
    call = start(data.module);
    return;
  }
  const began = performance.now();
  const answer = call(data.request);
  postMessage({ id: data.id, answer: { ...answer, ms: performance.now() - began }, list: Array.isArray(answer) ? answer : undefined });
};
