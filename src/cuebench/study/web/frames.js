// Time by the frames of the display, not by timers: what is drawn in a frame is seen from that frame on.

export const nextFrame = () => new Promise(resolve => requestAnimationFrame(resolve));

// The duration of a frame in ms: the median of some frames; 1000 / 60 where the page is hidden.
export async function frameDuration(count = 24) {
  if (document.hidden) return 1000 / 60;
  const times = [await nextFrame()];
  for (let i = 0; i < count; i++) times.push(await nextFrame());
  const steps = times.slice(1).map((time, i) => time - times[i]).sort((a, b) => a - b);
  return steps[count >> 1] || 1000 / 60;
}

// Wait until `ms` have passed since the frame at `start`: the nearest frame, as a display cannot show half of one.
// `watch(step)` sees the duration of each frame. Returns the time of the frame.
export async function framesUntil(start, ms, frame, watch, ended = () => false) {
  let last = start;
  for (;;) {
    const now = await nextFrame();
    watch(now - last);
    last = now;
    if (ended() || now - start >= ms - frame / 2) return now;
  }
}
