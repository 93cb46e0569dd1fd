// The words of the views below; the frame has its own.

import { addWords } from "../../shared/words.js";
import { VIEWS_EN } from "./words_en.js";
import { VIEWS_TR } from "./words_tr.js";

addWords(VIEWS_TR, VIEWS_EN);
