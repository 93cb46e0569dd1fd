export const HOME_EN = {
  claim: "One button. Somebody by your side.",
  about:
    "An elder presses one button. The nearest student among those who have helped least this month is asked, and has ten minutes to answer. Then the next one is asked, until a student is on the way. If nobody can come, a person tells the elder so. No request ends in silence.",
  elderDoor: "Elder",
  elderAbout: "One large button, honest progress.",
  studentDoor: "Student",
  studentAbout: "One question, ten minutes, two buttons.",
  coordinatorDoor: "Coordinator",
  coordinatorAbout: "Open requests, the map, who was asked and why.",
  apiDoor: "API reference",
  bothTitle: "Try it",
  bothAbout: "Ayşe's and Ahmet's phones open side by side. Press on one, answer on the other.",
  bothButton: "Be Ayşe and Ahmet",
  health_ready: "Everything works.",
  health_degraded: "It works, but a part of it is late.",
  health_unready: "No requests can be taken at the moment.",
  language: "Türkçe",
};
