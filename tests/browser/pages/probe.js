// A worker that tries what the policy forbids, to prove that the policy holds inside workers and that a
// violation there reaches the log of the test.
self.onmessage = async ({ data: { elsewhere } }) => {
  const result = {};
  try {
    // The forbidden call is the point of this file.
    result.evaluated = self.eval('1 + 1');
  } catch (error) {
    result.evaluated = error.name;
  }
  try {
    await fetch(elsewhere);
    result.fetched = true;
  } catch (error) {
    result.fetched = error.name;
  }
  self.postMessage(result);
};
