//! What `benches/guard.mjs` times: the guard on statements of about 200 characters, a thousand times over all of them.
#![allow(missing_docs)]

use foremind_guard::{Guard, Verdict};

const STATEMENTS: [&str; 10] = [
    "I have been allergic to tree nuts since I was a child, so please leave out almonds, hazelnuts and marzipan when you plan our dinners, and remind me to carry the pen whenever we travel to the mountains.",
    "My sister Nora moved to Lisbon in March with her two cats and a green canoe, works for a small print shop near the harbour three days a week, and sends me a postcard with a new tram on it every month.",
    "On weekdays I get up at six, swim for forty minutes, take 5 mg of ramipril with a glass of water, and then cycle along the river to the office, unless it rains, in which case I take the number 12 tram.",
    "The deployment of the orders service uses two read replicas, a queue with dead letters and canary releases at five percent; if the error rate rises above one percent the gateway goes back by itself.",
    "Seit dem Umbau ist die Küche im Erdgeschoss, der Backofen steht rechts neben dem Fenster, und weil meine Mutter im Rollstuhl sitzt, sind alle Griffe und Schalter auf einer Höhe von neunzig Zentimetern.",
    "Desde que nació mi hija trabajo por las mañanas en la biblioteca del barrio y por las tardes en casa; los jueves canta en un coro, así que cenamos tarde, sin marisco, porque mi marido no lo tolera bien.",
    "Mon ancien appartement donnait sur une cour bruyante, alors nous avons loué une maison avec un petit jardin où poussent des tomates, du thym et un vieux figuier que mon grand-père avait planté autrefois.",
    "去年冬天我们全家从北方搬到了海边的一座小城，孩子在附近的小学上三年级，我每天早上先送他上学，再沿着堤岸走到图书馆上班，中午通常和同事一起吃面，因为对花生过敏，所以总要先问清楚酱料里放了什么，晚上回家以后陪他读一会儿书再睡觉，周末一般去爬山或者看望外婆。",
    "इस साल से हम पहाड़ के पास एक छोटे घर में रहते हैं, सुबह मैं दूध और मेवे के बिना दलिया खाता हूँ, फिर पैदल दफ़्तर जाता हूँ, और शाम को बेटी के साथ पुस्तकालय में बैठकर उसकी कहानियाँ सुनता हूँ, जो हर दिन लंबी होती हैं।",
    "Our allotment has the number 47, the water is turned on from April to October, the key to the shed hangs behind the blue door, and whoever comes last closes the gate, since the neighbour's goats like our beans.",
];

fn main() {
    let guard = Guard::new();
    let mut kept = 0_u32;
    for _ in 0..1_000 {
        for statement in STATEMENTS {
            kept += u32::from(matches!(guard.statement(statement), Ok(Verdict::Accept(_))));
        }
    }
    assert!(kept > 0);
}
