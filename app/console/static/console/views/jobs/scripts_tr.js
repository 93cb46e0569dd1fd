// The Turkish words of the scripts that the product ships with: title, summary, description, and of each parameter its
// label and its hint. Their English words are those that they declare.

export const SCRIPTS_TR = {
  check_promises: {
    title: "Sözleri denetle",
    summary: "Bir arızadan sonra, çalışan kopyada tutulmamış söz arar.",
    description:
      "PostgreSQL ve Redis'i okur, ikisini de değiştirmez. Tutulmamış bir söz ya da cevapsız bir soru varsa ok değeri false olur; promises.txt her birinin ne anlama geldiğini ve ne yapılacağını yazar.",
    params: {
      since: ["Başlangıç", "Bu andan sonraki istekler ve bütün açık istekler; bütün geçmiş için all. Boşsa son 7 gün."],
      grace_s: ["Hoş görülen gecikme, saniye", "Çalışan bir kopyada bir iş en çok bu kadar gecikebilir."],
      late_s: ["Geç kapanma, saniye", "Bir teklif süresi dolduktan en çok bu kadar sonra kapanmış olabilir."],
      examples: ["Örnek sayısı", "Her soru için en çok bu kadar numara gösterilir."],
      timeout_s: ["Soru başına süre, saniye", "Bir soru en çok bu kadar sürer."],
      redis: ["Redis'e de bak", "Redis, PostgreSQL ile karşılaştırılır."],
      settle_s: ["Yerleşme süresi, saniye", "Bundan yeni bir değişiklik Redis'e ulaşmamış olabilir."],
      patience_s: ["Sabır, saniye", "Redis'teki bir fark bu kadar sürerse sayılır."],
    },
  },
  demo_city: {
    title: "Deneme şehri",
    summary: "Veritabanını şehirde yaşar gibi öğrenci ve yaşlılarla, istenirse bitmiş isteklerle doldurur.",
    description:
      "Aynı tohum aynı kişileri üretir; ikinci çalışma yalnızca eksikleri ekler. Adlar uydurmadır, telefon numaralarının hiçbiri gerçek değildir. Canlı ortamda force olmadan çalışmaz.",
    params: {
      students: ["Öğrenci", "Kaç öğrenci."],
      elders: ["Yaşlı", "Kaç yaşlı."],
      seed: ["Tohum", "Aynı tohum aynı kişileri ve yerleri üretir."],
      on_duty: ["Nöbettekilerin payı", "Öğrencilerin ne kadarı nöbette: 0 ile 1 arası."],
      institutions: ["Kurumlar", "Kurum numaraları; her kişi birine bağlanır."],
      tasks: ["Bitmiş istek", "Teklifleriyle birlikte kaç bitmiş istek."],
      days: ["Gün", "Bitmiş istekler kaç güne yayılır."],
      until: ["Son gün", "Bitmiş istekler bu günden önce biter; boşsa bugün."],
      force: ["Yine de çalıştır", "Canlı ortamda gerekir."],
    },
  },
  fairness_report: {
    title: "Adalet raporu",
    summary: "Bir ayın isteklerinin öğrenciler arasında ne kadar adil paylaşıldığını ve nerelerde kimsenin bulunamadığını gösterir.",
    description:
      "İnsanlar için bir HTML sayfası, tablolar için CSV, programlar için JSON bırakır. Hiçbir kişinin adı geçmez: öğrenciler numarayla yazılır, çok az yaşlının olduğu mahalleler gösterilmez.",
    params: {
      month: ["Ay", "2026-09 gibi; boşsa geçen ay."],
      institution: ["Kurum numarası", "Yalnızca bu kurumun yaşlılarının istekleri."],
      least_people: ["Mahallede en az yaşlı", "Daha az yaşlısı olan mahalle gösterilmez."],
      precision: ["Kare büyüklüğü", "Geohash harf sayısı; 6, yaklaşık 0,9 × 0,6 km."],
      language: ["Dil", "Sayfanın dili."],
      heading: ["Başlık", "En üstteki ad, örneğin kurumun adı."],
    },
  },
  privacy_retention: {
    title: "Süresi dolan veriyi unut",
    summary: "Süresi dolan kişisel veriyi siler, sayıları tutar.",
    description:
      "Her veri türünün kendi süresi vardır (RETAIN_…_DAYS). Satırlar öteki işlerin yanında küçük parçalarla silinir. Yarıda kalan çalışma istendiği zaman yinelenebilir.",
    params: {
      dry_run: ["Yalnızca say", "Silmeden, nelerin silineceğini sayar."],
      kinds: ["Türler", "Yalnızca bunlar, virgülle ayrılmış; boşsa hepsi."],
    },
  },
  rebuild_counts: {
    title: "Sayıları yeniden hesapla",
    summary: "Tutulan sayıları isteklerden ve tekliflerden yeniden hesaplar, tutmayanları yazar, istenirse düzeltir.",
    description:
      "Öğrencilerde: bu ay tamamlanan istekler, açık görev, hesabın açık olup olmadığı. İsteklerde: kaç öğrenciye sorulduğu, kaçının atlandığı. Düzeltme istenmezse hiçbir şey değişmez.",
    params: {
      fix: ["Düzelt", "Tutmayanları düzeltir de."],
      portion: ["Parça büyüklüğü", "Bir kerede kaç istek okunur."],
      examples: ["Örnek sayısı", "Her türden en çok bu kadar satır gösterilir."],
    },
  },
  roster_sync: {
    title: "Listeleri al",
    summary: "Öğrenci ve yaşlıların en yeni listelerini alır, değişenleri yayımlar.",
    description:
      "Listeler ve sınırlar ROSTER_… ayarlarından gelir. Aynı anda birden çok çalışma istenebilir: biri çalışır, ötekiler hemen biter.",
    params: {
      kinds: ["Türler", "Yalnızca bunlar, virgülle ayrılmış; boşsa listesi olan bütün türler."],
      dry_run: ["Yalnızca anlat", "Nelerin değişeceğini ve kimi etkileyeceğini yazar, hiçbir şeyi değiştirmez."],
    },
  },
};
