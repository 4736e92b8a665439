"""Words by which the `rules` judge recognises ignorance, offers, evasions, thanks and dissatisfaction.

How an agent admits that something failed, and how a person reproaches it, is in `otel_evals.signals.wording`: signals
and judge read it alike.

Ours, small on purpose, lower case. A longer list would not make this a model; it is a floor that costs
nothing. Languages: English, German, French, Spanish, Italian, Portuguese, Dutch, Chinese, Japanese, Korean.
"""

from __future__ import annotations

__all__ = ["ADMITS", "CAUSE", "DISSATISFIED", "EVADES", "INTERNALS", "OFFERS", "RETRY", "THANKS"]

ADMITS = (
    *("i don't know", "i do not know", "i'm not sure", "i am not sure", "i don't have", "i do not have"),
    *("i can't", "i cannot", "i could not", "i couldn't", "i'm unable", "i am unable", "i was unable"),
    *("i'm not able", "i am not able", "i was not able", "i wasn't able", "i have no idea", "i'm afraid"),
    *("there is no real", "there's no real", "beyond my", "no reliable", "i have no information"),
    *("weiß ich nicht", "ich weiß nicht", "kann ich nicht", "ich kann nicht", "konnte ich nicht"),
    *("ich konnte", "liegen mir nicht vor", "je ne sais pas", "je ne peux pas", "je n'ai pas pu"),
    *("no lo sé", "no sé", "no puedo", "no pude", "no tengo", "non lo so", "non so", "non posso"),
    *("non riesco", "non sono riuscit", "não sei", "não posso", "não consegui", "não tenho"),
    *("weet ik niet", "ik kan niet", "kon ik niet", "不知道", "我无法", "わかりません", "分かりません"),
    *("できません", "모르겠", "할 수 없"),
)
"""The agent says of itself that it does not know or cannot."""

CAUSE = (
    *("timed out", "timeout", "time out", "too long", "did not answer", "didn't answer", "not respond"),
    *("n't respond", "delay", "connection", "network", "unreachable", "reached", "reachable", "offline"),
    *("down", "maintenance", "overload", "invalid", "rejected", "refused", "did not accept", "denied"),
    *("not found", "not enough", "no longer", "incomplete", "only part", "garbled", "make no sense"),
    *("breaks off", "left out", "error", "unavailable", "failed on", "because", "due to", "exceeds"),
    *("zeitüberschreitung", "nicht erreichbar", "nicht geantwortet", "wegen", "weil", "injoignable"),
    *("ne répond pas", "à cause", "parce que", "car ", "no responde", "tiempo de espera", "porque"),
    *("debido", "non risponde", "perché", "a causa", "não responde", "devido", "omdat", "超时", "因为"),
    *("タイムアウト", "ため", "시간 초과", "때문"),
)
"""Why it did not work."""

OFFERS = (
    *("instead", "alternativ", "you could", "you can ", "another option", "other option", "i can ", "i could "),
    *("would you like", "shall i", "do you want me", "if you like", "if you want", "way round", "way around"),
    *("workaround", "recommend", "suggest", "please check", "consider ", "transfer you", "different date"),
    *("nearby", "pass this", "let me know which", "let me know if", "please give me", "please provide"),
    *("stattdessen", "sie könnten", "sie können", "du kannst", "ich kann ihnen", "möchten sie", "soll ich"),
    *("à la place", "vous pouvez", "vous pourriez", "je peux", "voulez-vous", "souhaitez-vous"),
    *("en su lugar", "puede ", "puedes ", "podría", "puedo ", "quiere que", "invece", "potrebbe", "può "),
    *("posso ", "vuole che", "em vez disso", "você pode", "gostaria", "in plaats daarvan", "u kunt"),
    *("zal ik", "您可以", "你可以", "我可以", "是否需要", "代わりに", "ましょうか", "대신", "드릴까요"),
)
"""An alternative or next step."""

RETRY = (
    *("try again", "again later", "later", "in a few minutes", "shortly", "once more", "ask me again"),
    *("versuchen sie es", "noch einmal", "später", "réessay", "plus tard", "de nuevo", "más tarde"),
    *("riprov", "più tardi", "novamente", "mais tarde", "opnieuw", "稍后", "再试", "もう一度", "後ほど", "다시"),
)
"""A next step that fits any failure."""

EVADES = (
    *("it depends", "depends on", "let me look into", "look into that", "look into this", "get back to you"),
    *("one moment", "just a moment", "a moment please", "bear with me", "please hold", "hang on"),
    *("working on it", "working on this", "many ways", "many things to consider", "several factors"),
    *("many factors", "things vary", "good question", "various factors", "rest assured", "take this seriously"),
    *("thank you for your feedback", "thank you for your patience", "different ways", "hard to say"),
    *("anything else i can help", "as soon as possible", "i hear you", "i understand your"),
    *("es kommt darauf an", "das hängt", "ich kümmere mich", "einen moment", "viele möglichkeiten"),
    *("ça dépend", "cela dépend", "un instant", "un moment", "bonne question", "depende", "buena pregunta"),
    *("un momento", "dipende", "boa pergunta", "um momento", "het hangt ervan af", "een moment"),
    *("视情况", "取决于", "请稍等", "場合によります", "少々お待ち", "경우에 따라", "잠시만"),
)
"""Words that fill a reply without answering."""

THANKS = (
    *("thank", "thx", "appreciate", "that worked", "it works", "works now", "works for me", "solves it"),
    *("solved", "perfect", "exactly what i", "what i needed", "all i needed", "very helpful", "lovely"),
    *("danke", "vielen dank", "hat geklappt", "merci", "parfait", "gracias", "perfecto", "grazie"),
    *("perfetto", "obrigad", "perfeito", "bedankt", "dank je", "dank u", "谢谢", "ありがとう", "감사"),
)

DISSATISFIED = (
    *("useless", "n't help", "not help", "no help", "still don't know", "still do not know", "still need"),
    *("still waiting", "not answer", "n't answer", "not an answer", "are you even", "already gave", "i asked"),
    *("not what i asked", "not what i want", "that's wrong", "that is wrong", "you are wrong", "you're wrong"),
    *("pointless", "terrible", "hello?", "and? ", "das ist falsch", "immer noch", "ne m'aide pas"),
    *("toujours pas", "no me ayuda", "no sirve", "non aiuta", "não ajuda", "nutteloos", "helpt niet"),
    *("没有帮助", "役に立た", "ひどい", "도움이 안"),
)
"""The person says that the answer is none. How they reproach the agent is in `otel_evals.signals.wording`."""

INTERNALS = (
    *("traceback", "exception", "errno", "stack trace", "localhost", "127.0.0.1", "http 5", "http 4"),
    *("status code", "null pointer", "sqlstate", "0x", "api key", 'file "'),
)
