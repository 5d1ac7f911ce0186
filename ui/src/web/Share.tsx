// A link that shows one run to whoever has it.

import { useEffect, useRef, useState } from "preact/hooks";
import { shareRun } from "./api";
import { copyText } from "./clipboard";
import { Choice } from "./Fields";

/** How long a link is valid: days, or none for a link that ends only with all others. */
const VALIDITIES = [
  ["7", "7 days"],
  ["30", "30 days"],
  ["365", "1 year"],
  ["", "Until all links are revoked"],
] as const;

interface ShareDialogProps {
  run: string;
  onClose: () => void;
  onCopied: (text: string) => void;
  onProblem: (error: unknown) => void;
}

export function ShareDialog({ run, onClose, onCopied, onProblem }: ShareDialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [validity, setValidity] = useState<(typeof VALIDITIES)[number][0]>("30");
  const [link, setLink] = useState<{ path: string; valid_until?: string }>();
  const address = link && `${location.origin}${link.path}`;
  const fail = (error: unknown) => {
    dialog.current?.close();
    onProblem(error);
  };
  useEffect(() => dialog.current?.showModal(), []);
  useEffect(() => {
    let wanted = true;
    setLink(undefined);
    const days = validity === "" ? undefined : Number(validity);
    shareRun(run, days).then(
      (link) => wanted && setLink(link),
      (error) => wanted && fail(error),
    );
    return () => {
      wanted = false;
    };
  }, [run, validity]);
  const copy = async () => {
    if (address === undefined) return;
    const done = await copyText(address, dialog.current);
    dialog.current?.close();
    onCopied(done ? "Link copied" : "Copy the link from its field");
  };
  return (
    <dialog ref={dialog} aria-labelledby="share" onClose={onClose}>
      <h2 id="share">Share this run</h2>
      <p>Whoever has this link sees this run and its exports, without a token, and no other run.</p>
      <div class="field">
        <label for="link-validity">Valid for</label>
        <Choice
          id="link-validity"
          name="validity"
          value={validity}
          options={VALIDITIES}
          onChange={setValidity}
        />
      </div>
      <div class="field">
        <label for="shared-link">Link</label>
        <input
          id="shared-link"
          readOnly
          value={address ?? ""}
          onFocus={(event) => event.currentTarget.select()}
        />
        <p class="faint" role="status">
          {link &&
            (link.valid_until
              ? `Valid until ${link.valid_until.slice(0, 16).replace("T", " ")} UTC.`
              : "Valid until all links of this host are revoked.")}
        </p>
      </div>
      <p class="actions">
        <button type="button" class="primary" onClick={copy} disabled={address === undefined}>
          Copy
        </button>
        <button type="button" onClick={() => dialog.current?.close()}>
          Close
        </button>
      </p>
    </dialog>
  );
}
