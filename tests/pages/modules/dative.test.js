import { dative } from "../../../app/console/static/phone/dative.js";
import { equal, test } from "./cases.js";

const NAMES =
  "Ahmet'e Ayşe'ye Murat'a Ali'ye Fatma'ya Gül'e Onur'a Berat'a Zeynep'e Işıl'a Ilgın'a İrem'e Ömer'e Gönül'e Umut'a" +
  " Hakkı'ya Ebru'ya Cansu'ya Ülkü'ye Kübra'ya Ece'ye Can'a Elif'e Şükrü'ye Çağrı'ya Deniz'e Doğu'ya Nilüfer'e" +
  " Kemal'e Bilal'e Hilal'e Vural'a Erdal'a Kâzım'a Yağmur'a José'ye Łukasz'a";

test("the suffix follows the last vowel of the name", () => {
  for (const expected of NAMES.split(" ")) equal(dative(expected.split("'")[0]), expected);
});

test("capital letters are Turkish ones", () => {
  equal(dative("IŞIL"), "IŞIL'a");
  equal(dative("VİLDAN"), "VİLDAN'a");
  equal(dative("ALİ"), "ALİ'ye");
});

test("whatever stands for a name gets a suffix", () => {
  equal(dative("<img onerror=x>"), "<img onerror=x>'a");
  equal(dative("Ç."), "Ç.'e");
  equal(dative(""), "'e");
  equal(dative("Kenan (2)"), "Kenan (2)'a");
});
