"use strict";
for (const picture of document.querySelectorAll(".icicle")) {
  const field = picture.querySelector("input");
  const said = picture.querySelector("output");
  const drawings = [...picture.querySelectorAll("svg")].map((svg) => ({
    svg,
    boxes: [...svg.querySelectorAll(".box")].map((box) => ({
      box,
      depth: Number(box.dataset.depth),
      share: Number(box.dataset.share),
      // the second line of what the box says is its share
      places: box.querySelector("title").textContent.toLowerCase().split("\n").filter((_, n) => n !== 1).join("\n"),
    })),
  }));
  const search = ({ svg, boxes }, wanted) => {
    let count = 0, sum = 0, counted = Infinity; // the depth of the box around us whose time is in the sum already
    svg.classList.toggle("searched", wanted !== "");
    for (const { box, depth, share, places } of boxes) {
      if (depth <= counted) counted = Infinity;
      const hit = wanted !== "" && places.includes(wanted);
      box.classList.toggle("hit", hit);
      if (!hit) continue;
      count += 1;
      if (counted === Infinity) {
        sum += share;
        counted = depth;
      }
    }
    return { count, sum };
  };
  const show = () => {
    const wanted = field.value.trim().toLowerCase();
    const [{ count, sum }] = drawings.map((drawing) => search(drawing, wanted)); // of the first, which has the most boxes
    const share = sum > 0 && sum < 0.001 ? "< 0.1" : (100 * sum).toFixed(1);
    said.textContent = wanted === "" ? "" : count === 0 ? "nothing" : `${share} % of the time in ${count} ${count === 1 ? "box" : "boxes"}`;
  };
  field.addEventListener("input", show);
  picture.querySelector("[role=search]").hidden = false;
  show();
}
