import { readFileSync } from "node:fs";
import { defineConfig } from "vite";

// Every page is a copy of these packages, and their licences ask to be in each copy. The worker has none of them.
const licences = ["preact", "uplot"].map((name) => {
  const text = readFileSync(new URL(`node_modules/${name}/LICENSE`, import.meta.url), "utf8");
  return `${name}:\n${text.trim()}`;
});

const PAGES = {
  report: { entry: "src/report.tsx", name: "linerateReport" },
  web: { entry: "src/web/main.tsx", name: "linerateWeb" },
  worker: { entry: "src/web/worker.ts", name: "linerateWorker" },
};

// For each page one classic script and one style sheet with fixed names: the program embeds them. The worker of the
// web pages is a script only. A build has one of them, which --mode names.
export default defineConfig(({ mode }) => {
  const page = mode === "web" || mode === "worker" ? mode : "report";
  return {
    oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
    build: {
      outDir: "dist",
      // The folder has a file of its own that keeps it in version control.
      emptyOutDir: false,
      target: "es2022",
      rolldownOptions: {
        output: page === "worker" ? {} : { postBanner: `/*!\n${licences.join("\n\n")}\n*/` },
      },
      lib: {
        entry: PAGES[page].entry,
        formats: ["iife"],
        name: PAGES[page].name,
        fileName: () => `${page}.js`,
        cssFileName: page,
      },
    },
  };
});
