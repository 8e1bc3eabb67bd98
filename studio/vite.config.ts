// The build: one page, one script, one style sheet, and two records beside them: the licences of
// what is bundled, and a hash of the sources that the tests compare.
import { createHash } from "node:crypto";
import { existsSync, readFileSync, readdirSync, statSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { defineConfig, type Plugin } from "vite";

const here = dirname(fileURLToPath(import.meta.url));
const allowed = new Set(["MIT", "ISC", "BSD-3-Clause", "BSD-2-Clause", "0BSD"]);

function sources(folder: string): string[] {
  return readdirSync(folder)
    .filter((name) => name !== "node_modules" && !name.startsWith("."))
    .flatMap((name) => {
      const path = join(folder, name);
      return statSync(path).isDirectory() ? sources(path) : [path];
    });
}

function hashOfSources(): string {
  const files = sources(here).map((path) => relative(here, path).split(sep).join("/"));
  const hash = createHash("sha256");
  for (const name of files.sort((a, b) => (a < b ? -1 : 1))) {
    hash.update(`${name}\0`).update(readFileSync(join(here, name))).update("\0");
  }
  return hash.digest("hex");
}

function packageOf(id: string): string | null {
  const found = /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(id.replaceAll("\\", "/"));
  return found?.[1] ?? null;
}

function records(): Plugin {
  return {
    name: "records",
    generateBundle(_, bundle) {
      const folders = new Set<string>();
      for (const chunk of Object.values(bundle)) {
        if (chunk.type !== "chunk") continue;
        for (const id of Object.keys(chunk.modules)) {
          const folder = packageOf(id);
          if (folder !== null) folders.add(folder);
        }
      }
      const notices = [...folders].sort().map((folder) => {
        const about = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
        if (!allowed.has(about.license)) {
          throw new Error(`${about.name} has the licence ${about.license}, which is not allowed`);
        }
        const file = readdirSync(folder).find((name) => /^licen[cs]e/i.test(name));
        if (file === undefined || !existsSync(join(folder, file))) {
          throw new Error(`${about.name} has no licence file`);
        }
        const text = readFileSync(join(folder, file), "utf8").trim();
        return `${about.name} ${about.version} (${about.license})\n\n${text}\n`;
      });
      const title = "The page forewise studio contains these packages.\n\n";
      const source = title + notices.join(`\n${"-".repeat(80)}\n\n`);
      this.emitFile({ type: "asset", fileName: "licences.txt", source });
      const built = JSON.stringify({ sources: hashOfSources() }) + "\n";
      this.emitFile({ type: "asset", fileName: "built.json", source: built });
    },
  };
}

export default defineConfig({
  root: here,
  base: "/studio/",
  plugins: [records()],
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  server: { proxy: { "^/(policies|policy|decide|explain)": "http://127.0.0.1:8000" } },
  build: {
    outDir: join(here, "../src/forewise/serving/studio"),
    emptyOutDir: true,
    modulePreload: false,
    assetsInlineLimit: 0,
    target: "es2022",
    rollupOptions: {
      output: { entryFileNames: "studio-[hash].js", assetFileNames: "studio-[hash][extname]" },
    },
  },
});
