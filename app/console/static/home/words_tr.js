export const HOME_TR = {
  claim: "Bir düğme. Yanında biri.",
  about:
    "Yaşlı bir komşu düğmeye basar. Bu ay en az yardım etmiş en yakın gönüllü öğrenciye sorulur; on dakika içinde cevap verir. Gelemezse sıradakine sorulur, biri yola çıkana kadar. Kimse bulunamazsa bunu yaşlıya bir insan söyler. Hiçbir istek sessizlikle bitmez.",
  elderDoor: "Yardım isteyen",
  elderAbout: "Tek bir büyük düğme, dürüst bir ilerleme.",
  studentDoor: "Öğrenci",
  studentAbout: "Bir soru, on dakika, iki düğme.",
  coordinatorDoor: "Koordinatör",
  coordinatorAbout: "Açık istekler, harita, kime neden soruldu.",
  apiDoor: "API belgeleri",
  bothTitle: "Kendin dene",
  bothAbout: "Ayşe'nin ve Ahmet'in telefonları yan yana açılır. Birinde bas, ötekinde cevap ver.",
  bothButton: "Ayşe ve Ahmet ol",
  health_ready: "Her şey çalışıyor.",
  health_degraded: "Çalışıyor, ama bir parça geç kalıyor.",
  health_unready: "Şu an istek alınamıyor.",
  language: "English",
};
