// The form for the token.

import { useEffect, useRef, useState } from "preact/hooks";
import { signIn } from "./api";
import { asProblem } from "./problem";

export function SignIn({ onDone, onCancel }: { onDone: () => void; onCancel?: () => void }) {
  const [token, setToken] = useState("");
  const [trouble, setTrouble] = useState<string>();
  const [busy, setBusy] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    document.title = "Sign in · linerate";
    input.current?.focus();
  }, []);
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    try {
      await signIn(token.trim());
      onDone();
    } catch (error) {
      const problem = asProblem(error);
      setTrouble(problem.status === 401 ? "This token is not known here." : problem.text);
      input.current?.focus();
    } finally {
      setBusy(false);
    }
  };
  return (
    <form class="card narrow" onSubmit={submit}>
      <h1>Sign in</h1>
      <p>This server asks for a token. Its administrator can give you one.</p>
      <div class="field">
        <label for="token">Token</label>
        <input
          id="token"
          ref={input}
          type="password"
          autocomplete="current-password"
          required
          value={token}
          onInput={(event) => setToken(event.currentTarget.value)}
          aria-invalid={trouble !== undefined}
          aria-describedby={trouble && "token-trouble"}
        />
        {trouble && (
          <p class="trouble" id="token-trouble" role="alert">
            {trouble}
          </p>
        )}
      </div>
      <p class="actions">
        <button type="submit" class="primary" disabled={busy}>
          Sign in
        </button>
        {onCancel && (
          <button type="button" onClick={onCancel}>
            Back
          </button>
        )}
      </p>
    </form>
  );
}
