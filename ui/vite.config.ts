import { defineConfig } from "vite";

// One classic script and one style sheet with fixed names: the program embeds them and puts them into each page.
export default defineConfig({
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: "dist",
    // The folder has a file of its own that keeps it in version control.
    emptyOutDir: false,
    target: "es2022",
    lib: {
      entry: "src/report.tsx",
      formats: ["iife"],
      name: "linerateReport",
      fileName: () => "report.js",
      cssFileName: "report",
    },
  },
});
