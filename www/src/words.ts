// What the page says for the memory's vocabulary.

import type { Grade, Reason, MemoryRecord, Ttl } from 'foremind';

const grades: { [grade in Grade]: string } = {
  modifier: 'changes answers',
  circumstance: 'can change answers',
  informer: 'informs',
};

export const gradeWords = (grade: Grade): string => grades[grade];

/** `mental-health` as a person would write it. */
export const plain = (word: string): string => word.replaceAll('-', ' ');

export function ttlWords(ttl: Ttl): string {
  switch (ttl.kind) {
    case 'permanent':
      return 'for good';
    case 'until-changed':
      return 'until it changes';
    case 'dated':
      return `until ${new Date(ttl.untilMs).toLocaleDateString(undefined, { dateStyle: 'medium' })}`;
    case 'session':
      return `until ${new Date(ttl.untilMs).toLocaleTimeString(undefined, { timeStyle: 'short' })}`;
  }
}

export function reasonWords(reason: Reason): string {
  const signal = plain(reason.signal.replace(/^trap-/, 'doubt: '));
  const weight = reason.weight > 0 ? ` ${reason.weight.toFixed(2)}` : '';
  return reason.matched === '' ? `${signal}${weight}` : `“${reason.matched}” (${signal}${weight})`;
}

/** Why the router put it there and which questions it bears on, for the list. */
export function whyWords({ route }: MemoryRecord): string {
  const affects = route.affects.length > 0 ? ` Bears on ${route.affects.map(plain).join(', ')}.` : '';
  if (route.stage === 'owner') return `Because you decided so.${affects}`;
  if (route.reasons.length > 0) return `Because of ${route.reasons.map(reasonWords).join('; ')}.${affects}`;
  return route.judgement === 'unrouted' ? 'No signal so far; looked at again once meaning has loaded.' : 'No signal that it changes answers.';
}

export const count = (number: number, one: string, many: string): string => `${number} ${number === 1 ? one : many}`;
