// Load all images of a session before its first trial, and verify that they are the images of the study.

const AT_ONCE = 6, ATTEMPTS = 4;

const hex = buffer => Array.from(new Uint8Array(buffer), byte => byte.toString(16).padStart(2, "0")).join("");
const sleep = ms => new Promise(done => setTimeout(done, ms));

export class Damaged extends Error {}

async function verified(image) {
  let damaged = false;
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    if (attempt) await sleep(400 * 2 ** attempt);
    try {
      const reply = await fetch(image.url, { credentials: "omit", cache: attempt ? "reload" : "default" });
      if (!reply.ok) continue;
      const blob = await reply.blob();
      const found = hex(await crypto.subtle.digest("SHA-256", await blob.arrayBuffer()));
      if (found === image.sha256) return blob;
      damaged = true;
    } catch { /* the connection: try again */ }
  }
  throw damaged ? new Damaged(image.url) : new Error(image.url);
}

// Return id → decoded image element; `progress(share of the bytes)`.
export async function loadImages(images, progress) {
  const loaded = new Map(), waiting = [...images];
  const total = images.reduce((sum, image) => sum + (image.bytes || 1), 0);
  let done = 0;
  const worker = async () => {
    for (let image = waiting.shift(); image; image = waiting.shift()) {
      const element = new Image();
      element.src = URL.createObjectURL(await verified(image));
      element.alt = "";
      element.draggable = false;
      await element.decode();
      loaded.set(image.id, element);
      done += image.bytes || 1;
      progress(done / total);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return loaded;
}
