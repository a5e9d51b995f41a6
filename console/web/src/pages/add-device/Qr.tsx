import { useMemo } from "react";
import { encode } from "uqr";

/** A QR code: dark on light in every theme, with the margin that readers need. */
export function Qr({ value, label }: { value: string; label: string }) {
  const { size, path } = useMemo(() => {
    const code = encode(value, { border: 3 });
    const squares = code.data.flatMap((row, y) => row.flatMap((dark, x) => (dark ? [`M${x} ${y}h1v1h-1z`] : [])));
    return { size: code.size, path: squares.join("") };
  }, [value]);
  return (
    <svg
      role="img"
      aria-label={label}
      viewBox={`0 0 ${size} ${size}`}
      shapeRendering="crispEdges"
      className="size-40 shrink-0 rounded-lg border border-line bg-white fill-black"
    >
      <path d={path} />
    </svg>
  );
}
