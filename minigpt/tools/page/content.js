// What page() of minigpt/tools/page wrote into the file: what the models are called and what
// they read, as JSON, and their parameters, a line of base64 for each.
import { Model, unpack } from "forward";

const written = (id) => document.getElementById(id).textContent;

export const content = JSON.parse(written("content"));
export const UNIT = content.unit; // "character", or "token"
export const V = content.tokens.length;

/** Of each model the stages of its training: [[{step, model}]]. The parameters of a stage are
 * unpacked when it is first needed. */
export function stages() {
  const packed = written("weights").trim().split("\n");
  return content.models.map(({ config, snapshots }) => snapshots.map(({ step, tensors }) => {
    const base64 = packed.shift();
    let model = null;
    return { step, get model() { return model ??= new Model(config, unpack(tensors, base64)); } };
  }));
}
