/** One event of a text/event-stream. An id with no event tells only where to resume. */
export interface StreamEvent {
  id?: string;
  event: string;
  data: string;
}

/** Splits a stream's text into events, however it is cut. Feed it each piece; it gives back what has become whole. */
export class EventParser {
  #rest = "";
  #block: { id?: string; event: string; data: string[] } = { event: "", data: [] };

  feed(piece: string): StreamEvent[] {
    const lines = (this.#rest + piece).split(/\r\n|\n|\r(?!$)/);
    this.#rest = lines.pop() ?? "";
    const events: StreamEvent[] = [];
    for (const line of lines) {
      if (line !== "") {
        this.#field(line);
        continue;
      }
      const { id, event, data } = this.#block;
      if (id !== undefined || data.length > 0) events.push({ id, event, data: data.join("\n") });
      this.#block = { event: "", data: [] };
    }
    return events;
  }

  #field(line: string) {
    const colon = line.indexOf(":");
    if (colon === 0) return; // a comment
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "id") this.#block.id = value;
    if (name === "event") this.#block.event = value;
    if (name === "data") this.#block.data.push(value);
  }
}
