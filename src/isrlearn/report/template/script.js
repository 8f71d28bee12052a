"use strict";
(() => {
  const element = document.getElementById("settings");
  if (!element) return;
  const data = JSON.parse(element.textContent);
  const find = (id) => document.getElementById(id);
  const count = find("count");
  const scale = find("scale");
  const mark = find("now-mark");
  const cells = [...document.querySelectorAll("[data-group]")];
  const lines = [...document.querySelectorAll(".path")];

  const show = () => {
    const r = data.counts[Number(count.value)];
    const s = data.scales[Number(scale.value)];
    const point = data.points[Number(count.value) * data.scales.length + Number(scale.value)];
    const directions = r === 1 ? "1 direction" : `${r} directions`;
    find("count-now").textContent = directions;
    find("scale-now").textContent = point.kept;
    count.setAttribute("aria-valuetext", directions);
    scale.setAttribute("aria-valuetext", `${point.kept} kept`);
    find("worst-now").textContent = point.worst;
    find("interval-now").textContent = point.interval;
    find("group-now").textContent = point.group;
    find("average-now").textContent = point.average;
    find("nothing-now").hidden = r !== 0 && s !== 1;
    for (const cell of cells) cell.textContent = point.groups[Number(cell.dataset.group)];
    mark.setAttribute("transform", `translate(${point.x} ${point.y})`);
    for (const line of lines) line.classList.toggle("now", Number(line.dataset.r) === r);
  };
  const go = (r, s) => {
    count.value = String(r);
    scale.value = String(s);
    show();
  };
  count.addEventListener("input", show);
  scale.addEventListener("input", show);
  find("reset").addEventListener("click", () => go(data.at[0], data.at[1]));
  find("trade-off-figure").addEventListener("click", (event) => {
    const place = event.target.closest("[data-at]");
    if (place) go(...place.dataset.at.split(" "));
  });
  // A page that is reloaded may come back with the sliders where they were.
  show();
})();
