/** One event of a text/event-stream. An ID without an event only says where to resume. */
export interface StreamEvent {
  id?: string;
  event: string;
  data: string;
}

/**
 * Splits a stream into events, wherever its chunks begin and end. Feed it each chunk; it returns the complete events.
 */
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
