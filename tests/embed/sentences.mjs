// Sentences for comparisons of embedders: always the same, 1 to 250 words, twelve languages.

const WORDS = {
  en: "I am allergic to tree nuts and never eat almonds because my doctor said the reaction could be severe so please remember it when you suggest recipes for dinner with friends on Saturday evening near the harbour",
  de: "Ich wohne seit drei Jahren in Köln und darf wegen meiner Blutdrucktabletten keine Grapefruit essen außerdem heißt unsere größere Tochter Zoë und spielt gern Geige über den Dächern",
  fr: "Je suis végétarienne depuis l'été dernier mais mon fils préfère le poisson grillé à l'hôtel où nous dînons chaque vendredi avec des élèves français très bavards",
  es: "Mi hermana pequeña cumplió treinta años ayer y quería un pastel sin azúcar porque tiene diabetes desde niña aunque jamás se queja mañana viajará a Logroño",
  vi: "Tôi bị dị ứng với đậu phộng và hải sản nên không thể ăn ở nhà hàng này vào buổi tối cùng gia đình",
  ru: "У меня аллергия на орехи поэтому врач запретил есть миндаль и ещё я переехал в Казань прошлой осенью вместе с женой",
  el: "Είμαι αλλεργικός στους ξηρούς καρπούς και δεν τρώω ποτέ αμύγδαλα γιατί ο γιατρός το απαγόρευσε",
  ar: "أنا مصاب بالسكري ولا آكل السكر منذ سنوات لأن الطبيب نصحني بذلك وأعيش في القاهرة مع أسرتي",
  hi: "मुझे मूँगफली से एलर्जी है और मैं दिल्ली में अपने परिवार के साथ रहता हूँ इसलिए मीठा कम खाता हूँ",
  ja: "私は ナッツ アレルギー です。 夕食 には 魚 を 食べます 東京 に 住んで います 毎朝 公園 を 走る",
  zh: "我 对 坚果 过敏 不能 吃 花生 医生 说 反应 可能 很 严重 我们 住 在 上海 喜欢 安静 的 餐厅",
  ko: "저는 견과류 알레르기가 있어서 아몬드를 먹지 않아요 서울에서 가족과 함께 살고 있습니다 주말마다 산에 가요",
};
const JOINS = [" ", " ", " ", " ", " ", " ", ", ", ". ", "! ", " – ", " (", ") ", " 42 ", " 👍🏽 ", "? ", "; "];

/** xorshift32: equal seeds give equal sentences everywhere. */
function seeded(state) {
  return (end) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % end;
  };
}

/** `count` sentences; their lengths grow from 1 to 250 words, the short ones being the more frequent. */
export function sentences(count) {
  const below = seeded(0x5eed);
  const languages = Object.values(WORDS).map((text) => text.split(" "));
  return Array.from({ length: count }, (_, at) => {
    const words = 1 + Math.round(249 * (at / (count - 1)) ** 2);
    const language = languages[at % languages.length];
    let text = language[below(language.length)];
    for (let word = 1; word < words; word += 1) {
      // One word in ten comes from another language, as people do mix them.
      const from = below(10) === 0 ? languages[below(languages.length)] : language;
      text += JOINS[below(JOINS.length)] + from[below(from.length)];
    }
    return text;
  });
}

/** An English text of at least `words` short words: one token each, near enough for timing by length. */
export function plain(words) {
  const common = ["the", "cat", "sat", "on", "a", "warm", "stone", "and", "we", "ate", "bread"];
  return Array.from({ length: words }, (_, at) => common[at % common.length]).join(" ");
}
