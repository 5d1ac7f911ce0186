// The frame of every page: header, banners, sign-in, and the page that the address names.

import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { type Ability, getSession, type Session, signOut } from "./api";
import { CheckPage } from "./Check";
import { ComparePage } from "./Compare";
import { EnvelopePage } from "./Envelope";
import { FleetPage } from "./Fleet";
import { HistoryPage } from "./History";
import { Kiosk } from "./Kiosk";
import { LabsPage } from "./Labs";
import { type Visitor, VisitorContext } from "./load";
import { MessageSizesPage } from "./MessageSizes";
import { PlansPage } from "./Plans";
import { asProblem, type Problem } from "./problem";
import { Menu, RunPage } from "./Run";
import { type Route, route, useAddress } from "./router";
import { SharedPage } from "./Shared";
import { SignIn } from "./SignIn";
import { Start } from "./Start";
import { useLostSince } from "./stream";
import { clock } from "./words";

/** Pause before another attempt to reach the server, which is restarted or not there yet. */
const RETRY_MS = 3000;

export function App() {
  const address = useAddress();
  const here = route(address.pathname);
  const [session, setSession] = useState<Session>();
  const [problem, setProblem] = useState<Problem>();
  const [asking, setAsking] = useState(false);
  const load = useCallback(async () => {
    try {
      setSession(await getSession());
      setProblem(undefined);
    } catch (error) {
      const problem = asProblem(error);
      setProblem(problem);
      if (problem.status === 401) setAsking(true);
    }
  }, []);
  useEffect(() => {
    void load();
  }, []);
  useEffect(() => {
    if (!problem || problem.status === 401) return;
    const timer = setTimeout(load, RETRY_MS);
    return () => clearTimeout(timer);
  }, [problem]);
  const visitor = useMemo<Visitor | undefined>(
    () =>
      session && {
        session,
        can: (ability: Ability) => session.abilities.includes(ability),
        askForToken: () => setAsking(true),
      },
    [session],
  );
  const locked =
    here.page !== "shared" && (asking || (session?.needs_token && session.abilities.length === 0));
  const signedIn = useCallback(async () => {
    // The page comes back with the new abilities.
    await load();
    setAsking(false);
  }, []);
  const leave = async () => {
    await signOut().catch(() => undefined);
    await load();
  };
  if (here.page === "kiosk" && visitor && !locked)
    return (
      <VisitorContext.Provider value={visitor}>
        <Kiosk />
      </VisitorContext.Provider>
    );
  return (
    <VisitorContext.Provider value={visitor}>
      <Header
        session={session}
        here={here}
        onSignIn={locked || here.page === "shared" ? undefined : () => setAsking(true)}
        onSignOut={leave}
      />
      <Banners session={session} problem={problem} />
      <Main here={here}>
        {locked ? (
          <SignIn
            onDone={signedIn}
            {...(session?.abilities.length ? { onCancel: () => setAsking(false) } : {})}
          />
        ) : (
          visitor && <Page here={here} key={"id" in here ? here.id : here.page} />
        )}
      </Main>
    </VisitorContext.Provider>
  );
}

function Page({ here }: { here: Route }) {
  switch (here.page) {
    case "start":
      return <Start />;
    case "run":
      return <RunPage id={here.id} />;
    case "shared":
      return <SharedPage link={here} />;
    case "history":
      return <HistoryPage />;
    case "compare":
      return <ComparePage />;
    case "envelope":
      return <EnvelopePage />;
    case "check":
      return <CheckPage />;
    case "sizes":
      return <MessageSizesPage />;
    case "plans":
      return <PlansPage />;
    case "fleet":
      return <FleetPage />;
    case "labs":
      return <LabsPage />;
    case "lab":
      return <LabsPage name={here.id} />;
    default:
      return <Missing />;
  }
}

function Missing() {
  useEffect(() => {
    document.title = "Not found · linerate";
  }, []);
  return (
    <>
      <h1>There is no such page</h1>
      <p>
        <a href="/">Start a test</a>, or look for a run in the <a href="/history">history</a>.
      </p>
    </>
  );
}

/** The content. After a step to another page the focus is here, so that a screen reader begins with it. */
function Main({ here, children }: { here: Route; children: preact.ComponentChildren }) {
  const main = useRef<HTMLElement>(null);
  const path = "id" in here ? `${here.page} ${here.id}` : here.page;
  const shown = useRef(path);
  useEffect(() => {
    if (shown.current !== path) main.current?.focus({ preventScroll: true });
    shown.current = path;
  }, [path]);
  return (
    <main id="main" ref={main} tabIndex={-1}>
      {children}
    </main>
  );
}

interface HeaderProps {
  session: Session | undefined;
  here: Route;
  onSignIn: (() => void) | undefined;
  onSignOut: () => void;
}

function Header({ session, here, onSignIn, onSignOut }: HeaderProps) {
  const link = (page: Route["page"], address: string, label: string) => (
    <a href={address} aria-current={here.page === page ? "page" : undefined}>
      {label}
    </a>
  );
  return (
    <header class="top">
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <p class="mark">
        <a href="/">linerate</a>
        {session && <span class="host"> on {session.host}</span>}
      </p>
      <nav aria-label="Pages">
        {link("start", "/", "Start")}
        {link("history", "/history", "History")}
        {link("kiosk", "/kiosk", "Kiosk")}
        <Menu label="Tools">
          <li>{link("envelope", "/envelope", "What can this path carry?")}</li>
          <li>{link("check", "/check", "Can this be true?")}</li>
          <li>{link("sizes", "/sizes", "How long does a message take?")}</li>
          <li>{link("plans", "/plans", "Plans: many settings, again and again")}</li>
          <li>{link("fleet", "/fleet", "Fleet: many hosts by a calendar")}</li>
          <li>{link("labs", "/labs", "Emulated networks: their links and queues")}</li>
        </Menu>
        {session?.signed_in ? (
          <button type="button" onClick={onSignOut}>
            Sign out
          </button>
        ) : (
          session?.needs_token &&
          onSignIn && (
            <button type="button" onClick={onSignIn}>
              Sign in
            </button>
          )
        )}
      </nav>
    </header>
  );
}

function Banners({ session, problem }: { session: Session | undefined; problem: Problem | undefined }) {
  const since = useLostSince();
  return (
    <div role="status">
      {since && <p class="banner lost">Connection lost since {clock(since)}, reconnecting…</p>}
      {!since && problem && problem.status !== 401 && <p class="banner lost">{problem.text} Trying again…</p>}
      {session && session.archive !== "ok" && <p class="banner warn">⚠ Archive: {session.archive}</p>}
    </div>
  );
}
