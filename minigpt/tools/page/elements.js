// Elements of the page, and numbers as one reads them.

export const $ = (id) => document.getElementById(id);
export const still = matchMedia("(prefers-reduced-motion: reduce)").matches;

/** An element with its properties; those with a dash are set as attributes. */
export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.includes("-") || name === "role") made.setAttribute(name, value);
    else made[name] = value;
  }
  made.append(...children);
  return made;
}

/** A number as one reads it: with a minus as long as a plus, and none before 0.00. */
export function number(value, digits = 3) {
  if (!Number.isFinite(value)) return value < 0 ? "−∞" : "∞";
  const text = value.toFixed(digits);
  return Number(text) === 0 ? text.replace("-", "") : text.replace("-", "−");
}

/** The same with its sign; what is rounded to 0 has none. */
export function signed(value, digits = 2) {
  const text = number(value, digits);
  return isZero(value, digits) || text.startsWith("−") ? text : `+${text}`;
}

export const isZero = (value, digits = 2) => Number(value.toFixed(digits)) === 0;
