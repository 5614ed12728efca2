// Statements for measurements: distinct, of the lengths that people write, and the same on every run.
const people = ['My sister', 'My brother', 'A colleague', 'The neighbour', 'My cousin', 'An old friend', 'My aunt', 'The dentist'];
const verbs = ['recommended', 'sold', 'repaired', 'lost', 'photographed', 'described', 'borrowed', 'painted'];
const things = ['a cello', 'the garden bench', 'a sailing boat', 'the museum catalogue', 'a train ticket', 'the kettle',
  'a mountain bike', 'the bookshelf', 'a pottery wheel', 'the telescope'];
const places = ['in Porto', 'near the harbour', 'at the market', 'during the conference', 'before the holidays', 'on the night train'];

/** `count` statements, no two alike. */
export function statements(count) {
  return Array.from({ length: count }, (_, index) => {
    const person = people[index % people.length];
    const verb = verbs[Math.floor(index / people.length) % verbs.length];
    const thing = things[(index * 7) % things.length];
    const place = places[(index * 5) % places.length];
    return `${person} ${verb} ${thing} ${place}, note ${index + 1}`;
  });
}

/** What is asked; its words stand in some statements. */
export const query = 'Who repaired the telescope near the harbour?';

/** What changes answers: a profile of the usual length. */
export const constraints = [
  'I am allergic to tree nuts', 'I take lisinopril every morning', 'I am vegetarian', 'I have a cat called Milo', 'I use a wheelchair',
  'I am pregnant', 'My son has coeliac disease', 'I cannot drive', 'My kitchen has marble worktops', 'I live in Porto',
  'I am on a student visa', 'My lease forbids smoking', 'I keep kosher', 'I run Linux on every machine', 'I am afraid of heights',
];
