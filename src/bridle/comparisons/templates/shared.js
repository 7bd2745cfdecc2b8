"use strict";
// What every page with a script has: light and dark, and how numbers are written.
const bridlePage = (function () {
  const root = document.documentElement;
  const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");

  function remembered() {
    try {
      return window.localStorage.getItem("bridle-theme");
    } catch {
      return null; // storage may be forbidden, as it is for files in some browsers
    }
  }

  function remember(theme) {
    try {
      window.localStorage.setItem("bridle-theme", theme);
    } catch {
      // then the choice lasts as long as the page
    }
  }

  function setTheme(theme) {
    root.dataset.theme = theme;
    document.getElementById("dark").setAttribute("aria-checked", String(theme === "dark"));
  }

  // The switch with the id "dark": what the reader chose, else what the system prefers. `changed` is called after each change.
  function followTheme(changed) {
    document.getElementById("dark").addEventListener("click", () => {
      const theme = root.dataset.theme === "dark" ? "light" : "dark";
      setTheme(theme);
      remember(theme);
      changed();
    });
    prefersDark.addEventListener("change", (event) => {
      if (remembered()) return;
      setTheme(event.matches ? "dark" : "light");
      changed();
    });
    const theme = remembered();
    setTheme(theme === "dark" || theme === "light" ? theme : prefersDark.matches ? "dark" : "light");
  }

  const shortened = (text, length) => (text.length > length ? text.slice(0, length - 1) + "…" : text);

  function number(value) {
    if (value === null || value === undefined) return "–";
    const size = Math.abs(value);
    if (size === 0) return "0";
    if (size < 1e-9) return "≈ 0";
    const text = size >= 1e6 || size < 1e-3 ? size.toExponential(2) : size.toLocaleString("en", { maximumSignificantDigits: size >= 1000 ? 6 : 4, maximumFractionDigits: 4 });
    return (value < 0 ? "−" : "") + text;
  }

  return { followTheme, number, shortened };
})();
