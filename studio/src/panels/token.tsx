// Where the service wants a token.

import { useState } from "preact/hooks";

export function TokenPanel({ wrong, enter }: { wrong: boolean; enter: (token: string) => void }) {
  const [token, setToken] = useState("");
  return (
    <section class="card token">
      <h2>This service asks for its token</h2>
      <p class="quiet">It is kept for this tab alone, and goes into no address.</p>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (token.trim() !== "") enter(token.trim());
        }}
      >
        <label class="field">
          <span>Token</span>
          <input
            type="password" autocomplete="off" value={token} aria-invalid={wrong}
            onInput={(event) => setToken(event.currentTarget.value)}
          />
        </label>
        {wrong && <p class="bad" role="alert">That is not the token.</p>}
        <button type="submit" class="primary">Open</button>
      </form>
    </section>
  );
}
