// The shipped scripts in Turkish. In English they say it themselves, and what an institution has added is shown as it is.

export const SCRIPTS_TR = {
  check_promises: {
    title: "Sözleri denetle",
    summary: "Bir olaydan sonra çalışan kopyada tutulmamış söz arar.",
    description:
      "PostgreSQL'i ve Redis'i okur, ikisini de değiştirmez. Tutulmamış söz ya da cevapsız soru varsa sonuçta `ok` false olur; " +
      "`promises.txt` her birinin ne demek olduğunu ve ne yapılacağını söyler.",
    parameters: {
      since: [
        "Başlangıç",
        "Bu andan sonra açılan istekler ile açık olanların hepsi; `all` bütün geçmiş. Saat dilimi yazılmazsa hizmetinki geçerlidir. Boşsa son 7 gün.",
      ],
      grace_s: ["Gecikme payı (sn)", "Çalışan bir kopyada bir şeyin en çok kaç saniye gecikebileceği."],
      late_s: ["Kapanma payı (sn)", "Bir sorunun süresi bittikten en çok kaç saniye sonra kapanmış olabileceği."],
      examples: ["Örnek sayısı", "Her soru için en çok kaç numara gösterileceği."],
      timeout_s: ["Soru başına süre (sn)", "Bir sorunun en çok kaç saniye sürebileceği."],
      redis: ["Redis'i de denetle", "Redis'i PostgreSQL ile de karşılaştırır."],
      settle_s: ["Yerleşme süresi (sn)", "Bundan yeni bir değişiklik Redis'e henüz ulaşmamış olabilir."],
      patience_s: ["Sabır (sn)", "Redis'teki bir fark bu kadar sürerse sayılır."],
    },
  },
  demo_city: {
    title: "Örnek şehir",
    summary: "Veritabanını bir şehirdeymiş gibi yaşayan öğrenciler ve yaşlılarla, istenirse bitmiş isteklerle doldurur.",
    description:
      "Aynı tohum aynı kişileri üretir; ikinci çalışma yalnızca eksik olanları ekler. Adlar uydurmadır, telefon numaraları " +
      "gerçekte yoktur. `force` verilmezse gerçek ortamda çalışmaz, çünkü bu kişilere gerçek istekler sorulurdu.",
    parameters: {
      students: ["Öğrenciler", "Kaç öğrenci."],
      elders: ["Yaşlılar", "Kaç yaşlı."],
      seed: ["Tohum", "Aynı tohum aynı kişileri ve yerleri üretir."],
      on_duty: ["Nöbettekiler", "Öğrencilerin ne kadarının nöbette olduğu, 0 ile 1 arasında."],
      institutions: ["Kurumlar", "Kurum numaraları; her kişi bunlardan birine bağlanır."],
      tasks: ["İstekler", "Kaç bitmiş istek, sorulan öğrencileriyle."],
      days: ["Günler", "Bitmiş isteklerin kaç güne yayılacağı."],
      until: ["Bitiş günü", "Bitmiş istekler bu günden önce biter; boşsa bugün."],
      force: ["Yine de çalıştır", "Gerçek ortamda gerekir."],
    },
  },
  fairness_report: {
    title: "Adalet raporu",
    summary: "Bir ayın isteklerinin öğrenciler arasında ne kadar adil paylaşıldığını ve nerede kimsenin bulunamadığını bildirir.",
    description:
      "İnsanlar için bir HTML sayfası, hesap tabloları için CSV ve programlar için JSON dosyası bırakır. Kimsenin adı geçmez: " +
      "öğrenciler numarayla gösterilir, `least_people` sayısından az yaşlının olduğu semtler gösterilmez.",
    parameters: {
      month: ["Ay", "2026-09 gibi bir ay, hizmetin saat diliminde; boşsa geçen ay."],
      institution: ["Kurum", "Yalnızca bu kurumun yaşlılarının istekleri."],
      least_people: ["En az kişi", "Bundan az yaşlının olduğu semt gösterilmez."],
      precision: ["Ayrıntı", "Semtin geohash harf sayısı; 6 yaklaşık 0,9 × 0,6 km."],
      language: ["Dil", "Sayfanın dili."],
      heading: ["Başlık", "En üstteki ad, örneğin kurumun adı."],
    },
  },
  privacy_retention: {
    title: "Süresi dolan verileri unut",
    summary: "Kişisel verileri süreleri dolunca unutur, sayıları saklar.",
    description:
      "Her veri türünün kendi süresi vardır, `RETAIN_…_DAYS`; bkz. docs/privacy.md. Satırlar öteki işlerin yanında azar azar " +
      "unutulur. Yarıda kalan çalışma istendiği zaman yinelenebilir.",
    parameters: {
      dry_run: ["Yalnızca say", "Neyin unutulacağını yalnızca sayar."],
      kinds: [
        "Türler",
        "Yalnızca şunlardan olanlar: notes, places, dead_letters, keys, messages, in_app, addresses, attempts, notifications, actions, devices, roster, jobs. Boşsa hepsi.",
      ],
    },
  },
  rebuild_counts: {
    title: "Sayıları yeniden hesapla",
    summary: "Saklanan değerleri isteklerden ve sorulan öğrencilerden yeniden hesaplar, sapanları bildirir, istenirse düzeltir.",
    description:
      "Öğrenciler için: bu ay tamamladıkları istekler, açık görevleri ve hesaplarının açık olup olmadığı. İstekler için: kaç " +
      "öğrenciye sorulduğu ve kaçının atlandığı. `fix` verilmezse hiçbir şey değişmez.",
    parameters: {
      fix: ["Düzelt", "Sapanları düzeltir de."],
      portion: ["Parça", "Bir kerede kaç isteğin okunacağı."],
      examples: ["Örnek sayısı", "Her türden en çok kaç satırın gösterileceği."],
    },
  },
  roster_sync: {
    title: "Listeleri al",
    summary: "Öğrencilerin ve yaşlıların en yeni listelerini alır, neyin değiştiğini yayımlar.",
    description:
      "Listeler ve sınırlar ROSTER_… ayarlarından gelir; bkz. docs/roster.md. Aynı anda kaç çalışma istenirse istensin biri " +
      "çalışır, ötekiler hemen eksik olarak biter.",
    parameters: {
      kinds: ["Türler", "Yalnızca bu türler; boşsa listesi olanların hepsi."],
      dry_run: ["Yalnızca göster", "Neyin değişeceğini ve kimi etkileyeceğini yalnızca bildirir."],
    },
  },
};
