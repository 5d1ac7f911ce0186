import { readFileSync } from "node:fs";
import { defineConfig } from "vite";

// Every page is a copy of these packages, and their licences ask to be in each copy.
const licences = ["preact", "uplot"].map((name) => {
  const text = readFileSync(new URL(`node_modules/${name}/LICENSE`, import.meta.url), "utf8");
  return `${name}:\n${text.trim()}`;
});

// One classic script and one style sheet with fixed names: the program embeds them and puts them into each page.
export default defineConfig({
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: "dist",
    // The folder has a file of its own that keeps it in version control.
    emptyOutDir: false,
    target: "es2022",
    rolldownOptions: { output: { postBanner: `/*!\n${licences.join("\n\n")}\n*/` } },
    lib: {
      entry: "src/report.tsx",
      formats: ["iife"],
      name: "linerateReport",
      fileName: () => "report.js",
      cssFileName: "report",
    },
  },
});
