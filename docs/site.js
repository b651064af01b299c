// Tables wider than the screen scroll in a box of their own. Such a box takes the focus, so that keys can scroll it.
const attributes = { tabindex: "0", role: "region", "aria-label": "Table, scrolls sideways" };
const sizes = new ResizeObserver((entries) => {
  for (const box of new Set(entries.map(({ target }) => target.closest("div.table")))) {
    const scrolls = box.scrollWidth > box.clientWidth;
    for (const [name, value] of Object.entries(attributes)) {
      if (scrolls) box.setAttribute(name, value);
      else box.removeAttribute(name);
    }
  }
});
document.querySelectorAll("div.table, div.table table").forEach((part) => sizes.observe(part));
