/**
 * How changes are described, wherever they are shown: one (eventWords, EventDetails), many (ActivityList, groupEvents),
 * and when nodes were online (PresenceBand).
 */
export { ActivityList, laneIcons } from "./ActivityList";
export { actorFilter, EventDetails } from "./EventDetails";
export { type EventGroup, groupEvents } from "./group";
export { type KeyComments, useKeyComments } from "./keyComments";
export { PresenceBand, Strip, useSpans } from "./PresenceBand";
export { lengthWords, percentWords, type Span, shareOnline, spansOf } from "./presence";
export { actorWords, type EventWords, eventWords, type Lane, lanes, routeWords } from "./words";
