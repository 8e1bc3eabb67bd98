// What all charts share: margins, colours of the page, text that can be read on a phone.

export function frame(width: number, height: number) {
  return {
    width,
    height: width < 480 ? Math.round(height * 0.92) : height,
    marginLeft: 46,
    marginRight: 14,
    marginBottom: 34,
    style: { background: "transparent", color: "var(--quiet)", fontSize: "12px", overflow: "visible" },
  };
}
