// Animation of a disk's head: play, speed, and a slider; all data are in the page.
"use strict";
const data = JSON.parse(document.getElementById("moves").textContent);
const disk = document.getElementById("disk"), track = document.getElementById("track");
const slider = document.getElementById("at"), play = document.getElementById("play");
const speed = document.getElementById("speed"), told = document.getElementById("told");
const style = getComputedStyle(document.documentElement);
const color = (name) => style.getPropertyValue(name).trim();
const span = Math.max(data.span_ns, 1), count = data.times_ns.length;
let now = 0, before = null, isPlaying = false;

// Number of requests that have begun at a time: binary search.
function begun(time) {
  let low = 0, high = count;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (data.times_ns[middle] <= time) low = middle + 1; else high = middle;
  }
  return low;
}

function share(offset) {
  return (offset - data.low) / Math.max(data.high - data.low, 1);
}

function drawDisk(index) {
  const context = disk.getContext("2d"), middle = disk.width / 2;
  const outer = middle - 6, inner = outer * 0.4;
  context.clearRect(0, 0, disk.width, disk.height);
  context.strokeStyle = color("--line");
  for (const radius of [outer, inner]) {
    context.beginPath();
    context.arc(middle, middle, radius, 0, 2 * Math.PI);
    context.stroke();
  }
  // The last requests as rings, the newest one the strongest; the first byte is outside.
  for (let back = Math.min(11, index - 1); back >= 0; back--) {
    const at = index - 1 - back;
    if (at < 0) continue;
    const radius = outer - share(data.offsets[at]) * (outer - inner);
    context.globalAlpha = back === 0 ? 1 : 0.35 - back * 0.025;
    context.lineWidth = back === 0 ? 3 : 1;
    context.strokeStyle = color(data.bytes[at] < 0 ? "--c1" : "--c0");
    context.beginPath();
    context.arc(middle, middle, radius, 0, 2 * Math.PI);
    context.stroke();
  }
  context.globalAlpha = 1;
  if (index > 0) {
    const radius = outer - share(data.offsets[index - 1]) * (outer - inner);
    context.strokeStyle = color("--ink");
    context.lineWidth = 2;
    context.beginPath();
    context.moveTo(disk.width - 2, 4);
    context.lineTo(middle + radius * 0.7071, middle - radius * 0.7071);
    context.stroke();
    context.fillStyle = color("--ink");
    context.beginPath();
    context.arc(middle + radius * 0.7071, middle - radius * 0.7071, 4, 0, 2 * Math.PI);
    context.fill();
  }
}

// All requests, drawn once: a frame copies what has begun, and faintly what is still to come.
function wholeTrack() {
  const whole = document.createElement("canvas");
  whole.width = track.width;
  whole.height = track.height;
  const context = whole.getContext("2d"), colors = [color("--c0"), color("--c1")];
  for (let at = 0; at < count; at++) {
    const x = data.times_ns[at] / span * (track.width - 2);
    const y = track.height - 2 - share(data.offsets[at]) * (track.height - 4);
    context.fillStyle = colors[data.bytes[at] < 0 ? 1 : 0];
    context.fillRect(x, y, 2, 2);
  }
  return whole;
}
const whole = wholeTrack();

function drawTrack() {
  const context = track.getContext("2d"), at = now / span * (track.width - 2);
  const begun = Math.ceil(at) + 1, height = track.height;
  context.clearRect(0, 0, track.width, height);
  context.globalAlpha = 0.15;
  context.drawImage(whole, 0, 0);
  context.globalAlpha = 0.8;
  context.drawImage(whole, 0, 0, begun, height, 0, 0, begun, height);
  context.globalAlpha = 1;
  context.fillStyle = color("--ink");
  context.fillRect(at, 0, 1, height);
}

function show() {
  const index = begun(now);
  slider.value = String(Math.round(now / span * 10000));
  drawDisk(index);
  drawTrack();
  const seconds = (now / 1e9).toFixed(6);
  if (index === 0) {
    told.textContent = `${seconds} s: before the first request`;
  } else {
    const at = index - 1, bytes = data.bytes[at];
    told.textContent = `${seconds} s: request ${at * data.every + 1}, ` +
      `${bytes < 0 ? "writes" : "reads"} ${Math.abs(bytes)} bytes at byte ${data.offsets[at]}`;
  }
  document.body.dataset.index = String(index);
  document.body.dataset.offset = index ? String(data.offsets[index - 1]) : "";
}

function step(time) {
  if (!isPlaying) return;
  if (before !== null) now = Math.min(now + (time - before) * 1e6 * Number(speed.value), span);
  before = time;
  show();
  if (now >= span) setPlaying(false); else requestAnimationFrame(step);
}

function setPlaying(value) {
  isPlaying = value;
  before = null;
  play.textContent = value ? "pause" : "play";
  if (value) {
    if (now >= span) now = 0;
    requestAnimationFrame(step);
  }
}

function fromAddress() {
  const found = /^#t=([0-9.]+)$/.exec(location.hash);
  if (found) now = Math.min(Number(found[1]) * 1e9, span);
  show();
}

play.addEventListener("click", () => setPlaying(!isPlaying));
slider.addEventListener("input", () => {
  setPlaying(false);
  now = Number(slider.value) / 10000 * span;
  show();
});
window.addEventListener("hashchange", fromAddress);
fromAddress();
