"""Words of admission, frustration and courtesy in the languages named, as data.

The lists are small on purpose: they match what is plain. What they miss (irony, further languages, polite
anger) a judge has to find; what they hit wrongly costs one judgement, never a score.
"""

from __future__ import annotations

from otel_evals.signals.folding import clip, fold, words
from otel_evals.signals.lexicon import Found, Lexicon

__all__ = ["acknowledges_failure", "admission", "asks", "frustration", "reproach"]

REASON_LETTERS = 4
"""Shorter words of an error message say nothing about its reason."""


def acknowledges_failure(text: str, message: str | None = None) -> bool:
    """The text admits that something failed or could not be done, or passes on the reason.

    Args:
        text: what the agent said.
        message: the tool's error message. Saying half of its words, and at least two, passes it on.
    """
    return admission(fold(clip(text)), message) is not None


def admission(folded: str, message: str | None = None) -> int | None:
    """Offset into a folded text at which it admits a failure, or passes on the reason; None: it does neither.

    Args:
        folded: what the agent said, folded, or at least in lower case with straight apostrophes.
        message: the tool's error message, as above.
    """
    if found := ADMISSION.search(folded):
        return found.start
    told = {word for word in words(fold(clip(message or ""))) if len(word) >= REASON_LETTERS}
    shared = told.intersection(words(folded))
    if len(shared) < 2 or len(shared) < len(told) / 2:
        return None
    return min(folded.find(word) for word in shared)


def frustration(text: str, folded: str, first: bool) -> str | None:
    """How the person shows frustration, e.g. `wording (en)` or `capitals or punctuation`; None: not seen.

    Args:
        text: what the person wrote.
        folded: the same, folded.
        first: it is the first message. A bad mood that somebody arrives with is no evidence about the agent.
    """
    if found := reproach(folded, first):
        return f"wording ({found.language})"
    return "capitals or punctuation" if _shouts(text) else None


def reproach(folded: str, first: bool) -> Found | None:
    """Where a folded message reproaches the agent or, if it is not the first one, shows a bad mood."""
    return (REPROACH if first else REPROACH_OR_MOOD).search(folded)


def asks(answer: str) -> bool:
    """The reply ends in a question that the person has to answer, other than "anything else?"."""
    if not answer.endswith(("?", "？", "؟")):
        return False
    tail = fold(answer[-200:])
    return not any(courtesy in tail for courtesy in COURTESY)


_CAPITALS = bytes(range(ord("A"), ord("Z") + 1))


def _shouts(text: str) -> bool:
    if "??" in text or "?!" in text or "!?" in text:
        return True
    head = text[:500]
    if head.isascii() and len(head) - len(head.encode().translate(None, _CAPITALS)) < 12:
        return False  # most texts
    loud = sum(map(str.isupper, head))
    if loud < 12 or loud < 0.8 * sum(map(str.isalpha, head)):
        return False
    # Airports, tickers and booking codes are capitals too, but hardly words.
    return sum(len(word) > 3 and word.isalpha() for word in head.split()) >= 2


COURTESY = (
    "anything else",
    "something else",
    "else i can",
    "can i help",
    "can i assist",
    "may i help",
    "may i assist",
    "sonst noch",
    "noch etwas",
    "weiterhelfen",
    "autre chose",
    "algo más",
    "algo mas",
    "mais alguma coisa",
    "qualcos'altro",
    "qualcosa d'altro",
    "nog iets",
    "coś jeszcze",
    "что-нибудь ещё",
    "что-то ещё",
    "başka bir",
    "他に",
    "ほかに",
    "其他",
    "别的",
    "還有什麼",
    "还有什么",
    "더 도와",
)

# "Sorry" and "unfortunately" are no admission, nor is "there are no flights": after a failed search that is the
# very thing to find. What counts is that something did not work.
ADMISSION = Lexicon(
    en=r"""
        (?:unable|unavailable|cannot|can't|can not)
        (?:isn't|wasn't|aren't|weren't) (?:able|possible|working|responding)
        (?:couldn't|couldnt|could not)
        error
        fail(?:s|ed|ure|ing)?\b
        (?:issue|problem|trouble) (?:occurred|arose|came up|prevent)
        (?:technical|temporary|some|an|the|this) (?:\w+ )?(?:issue|problem|trouble|difficult)
        (?:trouble|problems?|issues?|difficulty) (?:with|in|access|reach|connect|retriev|find|look)
        (?:timed out|time out|times out|time-out|timeout)
        did(?:n't| not) (?:work|succeed|go through|respond|return|answer|accept)
        does(?:n't| not) (?:work|respond|return|answer|accept)
        (?:taking|takes|took|taken) too long
        refused (?:the|this|my|our|your) (?:request|input|connection)
        not (?:enough|sufficient|eligible|accepted|allowed)
        insufficient
        no (?:access|response|connection)\b
        (?:went|gone|goes) wrong
        not (?:possible|work|respond|reachable|succe|able)\w*
        (?:is|was|are|were|currently|temporarily) (?:down|offline|unreachable|invalid)
        (?:denied|declined|rejected)
        try(?:ing)? again
        (?:don't|do not) (?:currently )?have (?:access|information|data|the)
    """,
    de=r"""
        (?:kann|konnte|könn|ließ|lässt|hat )[^.!?]{0,60}\bnicht\b
        nicht (?:möglich|erreichbar|geklappt|funktioniert|gelungen|abrufen)
        fehler
        fehlgeschlagen
        fehlschlag
        gescheitert
        störung
        problem
        zeitüberschreitung
        keine (?:antwort|verbindung)
    """,
    fr=r"""
        impossible
        erreur
        échou
        échec
        n'a(?:i|vons)? pas (?:pu|trouvé|réussi|fonctionné)
        ne (?:peux|pouvons|parviens|fonctionne|répond)
        n'arrive
        indisponible
        problème
        panne
    """,
    es=r"""
        no (?:pude|puedo|podemos|pudimos|se pudo|ha sido posible|fue posible|he podido)
        no (?:logré|funcion)
        fall[óoa]
        problema
        imposible
    """,
    pt=r"""
        não (?:consegui|consigo|foi possível|posso|pude|pôde|funcion)
        erro\b
        falh
        indisponível
    """,
    it=r"""
        non (?:riesco|sono riuscit|è stato possibile|posso|ho potuto|funziona|ha funzionato)
        errore
        impossibile
        fallit
    """,
    nl=r"""
        (?:kan |kon |lukt)[^.!?]{0,40}\bniet
        niet (?:gelukt|mogelijk)
        fout
        mislukt
        storing
        probleem
    """,
    pl=r"""
        błąd
        błęd
        nie (?:udało|mogę|można|mogłem|działa|powiod)
    """,
    ru=r"""
        ошибк
        не (?:удалось|могу|смог|получилось|работает)
        недоступ
        сбой
    """,
    tr=r"""
        hata
        başarısız
        (?:yapam|bulam|ulaşam)
    """,
    ja="エラー\n失敗\nできません\nできなかった\n問題が\nタイムアウト",
    zh="无法\n無法\n不能\n错误\n錯誤\n失败\n失敗\n出错\n出現問題\n出现问题\n超时\n逾時",
    ko="오류\n에러\n실패\n할 수 없\n수 없습니다\n못했\n문제가",
    ar="خطأ\nفشل\nتعذر\nلم أتمكن\nلا يمكن\nمشكلة",
    hi="त्रुटि\nअसमर्थ\nविफल\nनहीं कर\nनहीं हो\nनहीं मिल",
)

_REPROACH = {
    "en": r"""
        (?:this is|that's|that is|it's|it is|you're|you are) (?:\w+ ){0,2}(?:ridiculous|useless|pathetic)
        (?:this is|that's|that is|it's|it is|you're|you are) (?:\w+ ){0,2}(?:unacceptable|terrible|awful)
        (?:this is|that's|that is|it's|it is|you're|you are) (?:\w+ ){0,2}(?:nonsense|a joke|absurd|no help)
        (?:useless|stupid|dumb|idiotic) (?:bot|thing|assistant|machine|ai|app|system|service)
        (?:fed up|sick of this|had enough)
        (?:waste|wasting) (?:of )?(?:my )?time
        already (?:told|said|asked|explained|gave|mentioned|tried)
        just (?:told|said|asked|explained) (?:you|that|this|it)
        how many (?:more )?times
        (?:not|never) listening
        (?:that's|that is|this is|it's) not what i (?:asked|said|want|meant)
        still (?:not|doesn't|does not|isn't|is not|haven't|no)\b.{0,30}(?:work|help|answer|right|fixed)
        (?:stop|quit) (?:repeating|asking|saying)
        (?:speak|talk) (?:to|with) (?:an? |your )?(?:real |actual )?(?:person|supervisor|manager)
        (?:real|actual|live) (?:human|person)
        makes no sense
        (?:wtf|what the hell|fuck|bullshit|damn it|goddamn|for god's sake)
        (?:forget it|never mind|nevermind)\b
    """,
    "de": r"""
        (?:unbrauchbar|nutzlos|lächerlich|unverschämt|inakzeptabel|unfassbar|nervt|nervig)
        (?:das|es) (?:hilft|bringt) (?:mir )?(?:nicht|nichts)
        (?:hab|habe) ich (?:doch |dir |ihnen )?(?:schon|bereits|doch)
        (?:schon|bereits) (?:\w+ )?gesagt
        wie oft
        verdammt
        (?:echten|richtigen) menschen
        zeitverschwendung
        vergiss es
    """,
    "fr": r"""
        (?:inutile|ridicule|inacceptable|insupportable|n'importe quoi|honteux)
        déjà (?:dit|demandé|expliqué)
        perte de temps
        (?:parler|passer) (?:à|avec) (?:un|une) (?:humain|vraie personne|responsable)
        merde
        laisse[zr]? tomber
    """,
    "es": r"""
        (?:inútil|ridícul|inaceptable|vergüenza|harto|harta|absurdo|pésim)
        ya (?:(?:te|se|le|os|lo) ){0,2}(?:he dicho|dije|expliqué|pregunté)
        pérdida de tiempo
        (?:hablar|pasar) con (?:un|una) (?:humano|persona|agente|supervisor)
        mierda
        olvídalo
    """,
    "pt": r"""
        (?:inútil|ridícul|inaceitável|absurdo|péssim|vergonha)
        já (?:te |lhe |vos )?(?:disse|falei|expliquei|perguntei)
        perda de tempo
        falar com (?:um|uma) (?:humano|pessoa|atendente)
        esquece
    """,
    "it": r"""
        (?:inutile|ridicol|inaccettabile|vergogn|assurd)
        già (?:detto|chiesto|spiegato)
        perdita di tempo
        parlare con (?:un|una) (?:umano|persona|operatore)
        lascia perdere
    """,
    "nl": r"""
        (?:waardeloos|belachelijk|onacceptabel|irritant|schandalig)
        (?:heb ik|ik heb) (?:\w+ )?al (?:\w+ )?(?:gezegd|gevraagd|uitgelegd)
        tijdverspilling
        laat maar
    """,
    "pl": r"""
        (?:bezużyteczn|śmieszn|niedopuszczaln|żenad|absurd)
        już (?:ci |panu |pani )?(?:mówił|pisał|pytał)
        strata czasu
    """,
    "ru": r"""
        (?:бесполезн|смешно|неприемлем|издева|бесит|раздража|ужасн|отврат)
        уже (?:\w+ )?(?:говорил|сказал|писал|спрашивал|объяснял)
        сколько раз
        трата времени
    """,
    "tr": "saçmalık\nişe yaramaz\nrezalet\nzaman kaybı\nkaç kere\nsinir",
    "ja": "役に立たない\n使えない\nいい加減に\nふざけ\n何度も言\n最悪",
    "zh": "没用\n沒用\n太差\n垃圾\n荒谬\n荒謬\n受够\n受夠\n浪费时间\n浪費時間\n说过了\n說過了\n几遍\n幾遍",
    "ko": "쓸모없\n짜증\n답답\n말도 안\n몇 번\n시간 낭비",
    "ar": "سخيف\nعديم الفائدة\nمحبط\nغير مقبول\nقلت لك\nكم مرة",
    "hi": "बेकार\nबकवास\nकितनी बार",
}

_MOOD = {
    "en": r"""
        frustrat(?:ed|ing)
        (?:so|really|very|getting|quite|extremely|pretty) (?:annoy(?:ed|ing)|angry|upset)
        (?:so|really|very|getting|quite|extremely|pretty) (?:disappoint(?:ed|ing)|irritat(?:ed|ing))
    """,
    "de": r"""
        (?:frustrier|genervt|ärgerlich|enttäusch|verärgert)
    """,
    "fr": r"""
        (?:frustr|énerv|agaç|déçu)
    """,
    "es": r"""
        (?:frustra|enfadad|enojad|molest[oa]\b|decepcionad)
    """,
    "pt": r"""
        (?:frustra|irritad|chatead|decepcionad)
    """,
    "it": r"""
        (?:frustra|arrabbiat|delus)
    """,
    "nl": r"""
        (?:frustr|geïrriteerd|teleurgesteld|boos)
    """,
    "pl": r"""
        (?:frustruj|wściek|rozczarowan|zdenerwowan)
    """,
    "ru": r"""
        (?:разочарован|злюсь|расстроен)
    """,
    "tr": "sinirli\nhayal kırıklığı",
    "ja": "イライラ\nがっかり",
    "zh": "生气\n生氣\n失望",
    "ko": "실망\n화가 나",
    "ar": "محبط\nغاضب",
    "hi": "निराश\nगुस्सा",
}

REPROACH = Lexicon(**_REPROACH)
REPROACH_OR_MOOD = Lexicon(**{name: f"{entries}\n{_MOOD.get(name, '')}" for name, entries in _REPROACH.items()})
