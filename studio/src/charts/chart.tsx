// A figure that is drawn anew when its data or its width change, with its content in words.

import { useEffect, useRef, useState } from "preact/hooks";
import type { ComponentChildren } from "preact";

// The figure is said as a whole: Plot's names of its marks mean nothing to who hears them.
function unnamed<T extends Element>(drawn: T): T {
  drawn.querySelectorAll("[aria-label]").forEach((mark) => mark.removeAttribute("aria-label"));
  return drawn;
}

interface Props {
  title: string;
  said: string; // what a reader who does not see it is told
  draw: (width: number) => SVGSVGElement | HTMLElement;
  children?: ComponentChildren;
}

export function Chart({ title, said, draw, children }: Props) {
  const holder = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const node = holder.current;
    if (node === null) return;
    const watch = new ResizeObserver(([entry]) => {
      if (entry !== undefined) setWidth(Math.floor(entry.contentRect.width));
    });
    watch.observe(node);
    return () => watch.disconnect();
  }, []);
  useEffect(() => {
    if (width > 0) holder.current?.replaceChildren(unnamed(draw(width)));
  }, [draw, width]);
  return (
    <figure>
      <figcaption>{title}</figcaption>
      {children}
      <div class="chart" role="img" aria-label={said} ref={holder} />
    </figure>
  );
}
