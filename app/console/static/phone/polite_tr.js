// Elders are addressed politely. These are the words of both phones and of all pages that address a friend.

const LATER = "Sunucu şu an cevap veremiyor. Biraz sonra yeniden deneyin.";

export const POLITE_TR = {
  signedOut: "Oturumun süresi doldu. Yeniden girin.",
  unreachable: "Sunucuya ulaşılamıyor. Bağlantınızı denetleyin, sonra yeniden deneyin.",
  timedOut: "Sunucu zamanında cevap vermedi. Yeniden deneyin.",
  serverAway: LATER,
  wrongPhone: "Bu sayfa bir {role} hesabı için değil. Çıkıp yeniden girin.",
  problem_try_again: "Aynı anda başka bir şey değişti. Yeniden deneyin.",
  problem_too_many_requests: "Çok sık denendi. Biraz bekleyip yeniden deneyin.",
  problem_unavailable: "Sunucu şu an meşgul. Biraz sonra yeniden deneyin.",
  problem_overloaded: LATER,
  problem_draining: LATER,
  problem_database_unavailable: LATER,
  problem_verifier_unavailable: LATER,
  problem_internal_error: LATER,
  problem_user_deactivated: "Bu hesap kapatılmış. Kurumunuzla konuşun.",
};
