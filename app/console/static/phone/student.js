// The student's phone: offers, the accepted task, duty, and history.

import { createStore } from "../shared/store.js";
import { openLocationSharing } from "./location_sharing.js";
import { openNotices } from "./notices.js";
import { openPhone } from "./phone_app.js";
import { studentScreen } from "./student_screen.js";
import { openWorker } from "./worker_client.js";

const phone = openPhone({ kind: "student", role: "STUDENT" });
const place = createStore({ state: "off", place: null });
const sharing = openLocationSharing({ store: place, send: (spot) => phone.api.putLocation(spot) });
const worker = openWorker({ on: { send() {} } });
const notices = openNotices({ api: phone.api, worker, session: phone.session });

// Shared only in the name of somebody who is signed in, and only if they want it.
function follow() {
  if (phone.session.token() && sharing.isWanted()) sharing.start();
  else sharing.pause();
}
phone.session.onChange(follow);
follow();
phone.show(studentScreen({ place, sharing, notices }));
