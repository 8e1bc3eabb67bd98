// The title, the link to this view, and day or night.

import { useEffect, useState } from "preact/hooks";

const THEMES = ["auto", "light", "dark"] as const;
type Theme = (typeof THEMES)[number];
const KEY = "forewise-theme";

function kept(): Theme {
  const found = localStorage.getItem(KEY);
  return THEMES.find((theme) => theme === found) ?? "auto";
}

export function Header() {
  const [theme, setTheme] = useState<Theme>(kept);
  const [link, setLink] = useState<"" | "copied" | "shown">("");
  useEffect(() => {
    document.documentElement.dataset["theme"] = theme;
    localStorage.setItem(KEY, theme);
  }, [theme]);
  const copy = () => {
    // Browsers copy for pages of this computer and of https alone.
    const done = navigator.clipboard?.writeText(location.href);
    if (done === undefined) setLink("shown");
    else done.then(() => setLink("copied"), () => setLink("shown"));
  };
  return (
    <header>
      <h1>
        <svg width="22" height="22" viewBox="0 0 16 16" aria-hidden="true">
          <path d="M1 13C5 13 5 3 8 3s3 10 7 10" fill="none" stroke="var(--blue)" stroke-width="2.2" stroke-linecap="round" />
        </svg>
        forewise <span>studio</span>
      </h1>
      <div class="row">
        <span role="status" class="quiet small">{link === "copied" ? "Link copied" : ""}</span>
        {link === "shown" && <input class="link" aria-label="Link to this view" readOnly value={location.href} onFocus={(event) => event.currentTarget.select()} />}
        <button type="button" onClick={copy}>Copy link</button>
        <button
          type="button"
          aria-label={`Colours: ${theme}`}
          onClick={() => setTheme(THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] ?? "auto")}
        >
          {theme === "auto" ? "◐" : theme === "light" ? "☀" : "☾"} <span class="wide-only">{theme}</span>
        </button>
      </div>
    </header>
  );
}
